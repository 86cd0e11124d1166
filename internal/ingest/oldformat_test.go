package ingest

// This file tests logs with a message in a format from before Kafka 0.11, which a broker returns as it is
// stored.

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/start"
)

// fiveYearsAgo is the time of the message, if its format is 1.
var fiveYearsAgo = time.Now().AddDate(-5, 0, 0)

// sendOld publishes an event to partition 0 that must not count, and makes the broker return it as a message of
// an old format (magic).
func (w *world) sendOld(magic int8) {
	w.t.Helper()
	at, value := w.end(topic, 0), []byte(`{"user_id":"old","points":1}`)
	require.NoError(w.t, w.client.ProduceSync(w.t.Context(), &kgo.Record{Value: value, Timestamp: fiveYearsAgo}).FirstErr())
	fetched, err := New(w.config).worker(topic, 0, nil).locator.Resolver.Fetcher().Fetch(w.t.Context(), 0)
	require.NoError(w.t, err)
	log := bytes.Clone(fetched.Records)
	fetched.Release()
	before := 0
	for int64(binary.BigEndian.Uint64(log[before:])) < at { // whole batches
		before += 12 + int(binary.BigEndian.Uint32(log[before+8:]))
	}
	answer := append(log[:before:before], oldMessage(magic, at, value)...)
	w.cluster.ControlKey(int16(kmsg.Fetch), func(k kmsg.Request) (kmsg.Response, error, bool) {
		w.cluster.KeepControl()
		in := k.(*kmsg.FetchRequest)
		if in.Topics[0].Topic != topic || in.Topics[0].Partitions[0].FetchOffset > at {
			return nil, nil, false
		}
		resp := in.ResponseKind().(*kmsg.FetchResponse)
		answered, of := kmsg.NewFetchResponseTopic(), kmsg.NewFetchResponseTopicPartition()
		answered.Topic = in.Topics[0].Topic
		of.HighWatermark, of.LastStableOffset, of.RecordBatches = at+1, at+1, answer
		answered.Partitions = append(answered.Partitions, of)
		resp.Topics = append(resp.Topics, answered)
		return resp, nil, true
	})
}

// oldMessage encodes one message. The CRC comes after offset and size, and covers the bytes after it.
func oldMessage(magic int8, offset int64, value []byte) []byte {
	encode := func(size int32) []byte {
		if magic == 0 {
			m := kmsg.MessageV0{Offset: offset, MessageSize: size, Value: value}
			return m.AppendTo(nil)
		}
		m := kmsg.MessageV1{Offset: offset, MessageSize: size, Magic: 1, Timestamp: fiveYearsAgo.UnixMilli(), Value: value}
		return m.AppendTo(nil)
	}
	b := encode(int32(len(encode(0)) - 12))
	binary.BigEndian.PutUint32(b[12:], crc32.ChecksumIEEE(b[16:]))
	return b
}

func TestAMessageOfAnOldFormatHaltsAndNamesWhatGetsPastIt(t *testing.T) {
	t.Parallel()
	for magic := range int8(2) {
		w := newWorld(t, 1)
		w.send(0, some("a", 3, 5)...)
		w.sendOld(magic)
		r := w.worker(0, nil)
		eventually(t, "it halts", func() bool { return r.status.Line().Reason == health.HaltFormat })
		require.Contains(t, r.status.Line().What, fmt.Sprintf("events/0 at offset 3: a message of format %d", magic))
		for _, way := range []string{"copy the topic", "kafka-delete-records", "on_gap: continue", "message.format.version"} {
			require.Contains(t, r.status.Line().Remedy, way)
		}
		require.Equal(t, "3", w.standings.at(0), "what came before is in")

		w.send(0, some("b", 3, 5)...)
		require.NoError(t, w.cluster.DeleteRecords(topic, 0, 4))
		eventually(t, "it sees that", func() bool { return r.status.Line().Reason == health.HaltGap })
		r.stop(t)
		w.worker(0, func(c *Config) { c.OnGap = start.GapContinues })
		w.reaches(0)
	}
}

// A start needs the time of a log's first record. Format 1 has it, format 0 doesn't: then the start can't be
// determined from times, and reading halts.
func TestALogThatBeginsWithAnOldFormatIsReadFromBehindIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		magic int8
		start start.Where
		want  int64 // expected start offset
	}{
		{1, start.Where{From: start.FromWindow}, 1},
		{1, start.Where{From: start.FromTime, Time: time.Now().Add(-time.Hour)}, 1},
		{1, start.Where{From: start.FromEarliest}, 0},
		{0, start.Where{From: start.FromWindow}, 0},
		{0, start.Where{From: start.FromLatest}, 4},
	} {
		w := newWorld(t, 1)
		w.sendOld(c.magic)
		w.send(0, some("b", 3, 5)...)
		r := w.worker(0, func(cfg *Config) { cfg.Start = c.start })
		if c.want == 0 {
			eventually(t, "it halts", func() bool { return r.status.Line().Reason == health.HaltFormat })
			continue
		}
		if c.want > 1 {
			clear(w.want)
		}
		w.reaches(0)
		w.standings.do(func() {
			origin := w.standings.origin(t, "events/0")
			require.True(t, strings.HasPrefix(origin, fmt.Sprint(c.want, " ")), origin)
		})
	}
}
