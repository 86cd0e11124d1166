package e2e

// A topic that was begun before Kafka 0.11: its first segment holds messages of magic
// 0 and 1. Today's brokers don't write them any more and still hand them out, so they
// are put where a broker of then would have left them.

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/standings/standings/internal/testenv"
	"github.com/standings/standings/test/harness"
)

// oldSegment is a log of messages from an offset on, and the records that a consumer
// sees in it.
type oldSegment struct {
	from    int64
	log     bytes.Buffer
	records []*kgo.Record
}

func (s *oldSegment) next() int64 { return s.from + int64(len(s.records)) }

func (s *oldSegment) file(k *testenv.KafkaServer, topic string) string {
	return filepath.Join(k.Dir(), "data", topic+"-0", fmt.Sprintf("%020d.log", s.from))
}

// add appends events as messages of a magic, each by itself or all in one wrapper.
// None of magic 0 has a time.
func (s *oldSegment) add(t *testing.T, magic int8, wrapped bool, at time.Time, values ...string) {
	t.Helper()
	var inner bytes.Buffer
	first := s.next()
	for i, v := range values {
		offset, when := s.next(), at.UnixMilli()
		stored := offset
		if wrapped && magic == 1 { // as they lie to one another
			stored = int64(i)
		}
		inner.Write(oldMessage(magic, 0, stored, when, []byte(v)))
		if magic == 0 {
			when = -1
		}
		s.records = append(s.records, &kgo.Record{Offset: offset, Value: []byte(v), Timestamp: time.UnixMilli(when)})
	}
	if !wrapped {
		s.log.Write(inner.Bytes())
		return
	}
	var squeezed bytes.Buffer
	w := gzip.NewWriter(&squeezed)
	if _, err := w.Write(inner.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s.log.Write(oldMessage(magic, 1, first+int64(len(values))-1, at.UnixMilli(), squeezed.Bytes()))
}

// oldMessage encodes one message; the CRC stands behind offset and size, and covers
// what follows it.
func oldMessage(magic, attributes int8, offset, at int64, value []byte) []byte {
	encode := func(size int32) []byte {
		if magic == 0 {
			m := kmsg.MessageV0{Offset: offset, MessageSize: size, Attributes: attributes, Value: value}
			return m.AppendTo(nil)
		}
		m := kmsg.MessageV1{Offset: offset, MessageSize: size, Magic: 1, Attributes: attributes, Timestamp: at, Value: value}
		return m.AppendTo(nil)
	}
	b := encode(int32(len(encode(0)) - 12))
	binary.BigEndian.PutUint32(b[12:], crc32.ChecksumIEEE(b[16:]))
	return b
}

// put takes the place of the partition's log while its broker is down. What else the
// broker has worked out about it is removed: it finds that out again.
func (s *oldSegment) put(t *testing.T, k *testenv.KafkaServer, topic string) {
	t.Helper()
	dir := filepath.Dir(s.file(k, topic))
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Name() == "partition.metadata" { // the topic's id
			continue
		}
		if err := os.Remove(filepath.Join(dir, f.Name())); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(s.file(k, topic), s.log.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// consume counts what was published, behind the segment too, and holds that the
// broker still has the segment as it was put.
func (s *oldSegment) consume(t *testing.T, place *harness.Place) {
	t.Helper()
	place.Expect(t, s.records...)
	place.Publish(t, some("of today", 0, 100)...)
	if last := place.Published()[len(s.records)]; last.Offset != s.next() {
		t.Fatalf("the broker goes on at offset %d, and the old log ends at %d", last.Offset, s.next())
	}
	consumer := place.Start(t)
	place.AwaitCaughtUp(t, within)
	consumer.Terminate(t)
	place.Check(t)
	place.CheckCounts(t)
	if log, err := os.ReadFile(s.file(place.Kafka, place.Topic)); err != nil || !bytes.HasPrefix(log, s.log.Bytes()) {
		t.Errorf("the broker has written the old segment anew: %v", err)
	}
}

// older are events of n members, with a time in them.
func older(user string, n int, at time.Time) (values []string) {
	for i := range n {
		values = append(values, fmt.Sprintf(`{"user_id":"%s%d","points":%d,"occurred_at":%d}`, user, i%7, i+1, at.UnixMilli()+int64(i)))
	}
	return values
}

// A log whose first record has no time is read from its start by start: window: no
// time could say where a live window begins in it.
func TestATopicFromBeforeKafka011CountsLikeAnyOther(t *testing.T) {
	k := testenv.LocalKafka(t, nil)
	settings := map[string]string{"start": "window", "lateness": "10d"}
	place := harness.New(t, harness.Options{Kafka: k, Settings: settings})
	trimmed := harness.New(t, harness.Options{Kafka: k, Settings: settings})
	k.Stop()
	now := time.Now()
	s := &oldSegment{}
	s.add(t, 0, false, now, older("plain-0-", 20, now)...)
	s.add(t, 0, true, now, older("gzip-0-", 300, now)...)
	s.add(t, 0, false, now, `{"user_id":"no time","points":1}`) // dead-lettered: nobody knows when
	s.add(t, 1, false, now, older("plain-1-", 20, now)...)
	s.add(t, 1, true, now, older("gzip-1-", 3000, now)...)
	s.add(t, 1, true, now, `{"user_id":"the record's time","points":1}`, `{"broken`, `{"user_id":"last","points":1}`)
	s.put(t, k, place.Topic)
	none := &oldSegment{from: 1000} // what was before is deleted
	none.add(t, 0, true, now, older("gzip-0-", 300, now)...)
	none.add(t, 0, false, now, older("plain-0-", 20, now)...)
	none.put(t, k, trimmed.Topic)
	k.Start()

	s.consume(t, place)
	if offset, since := origin(t, place); offset != 0 || since != 0 {
		t.Errorf("the origin is %d, %d", offset, since)
	}
	none.consume(t, trimmed)
	if offset, since := origin(t, trimmed); offset != 1000 || since < now.UnixMilli()+maxFuture {
		t.Errorf("the origin is %d, %d, and should be the log's start, 1000, and no time before now: nobody can tell what is missing", offset, since)
	}
}
