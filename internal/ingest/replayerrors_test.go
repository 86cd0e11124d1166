package ingest

// This file tests errors during a replay.

import (
	"bytes"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/ledger"
)

// damages makes every fetch return the log's current bytes, with the very last byte changed.
func (w *world) damages(end int64) {
	w.t.Helper()
	require.Equal(w.t, end, w.end(topic, 0))
	got, err := w.replays.idleResolver(topic).Fetcher().Fetch(w.t.Context(), 0)
	require.NoError(w.t, err)
	all := bytes.Clone(got.Records)
	got.Release()
	require.NotEmpty(w.t, all)
	all[len(all)-1] ^= 0xff
	w.cluster.ControlKey(int16(kmsg.Fetch), func(k kmsg.Request) (kmsg.Response, error, bool) {
		w.cluster.KeepControl()
		in := k.(*kmsg.FetchRequest)
		resp := in.ResponseKind().(*kmsg.FetchResponse)
		answered, of := kmsg.NewFetchResponseTopic(), kmsg.NewFetchResponseTopicPartition()
		answered.Topic, answered.TopicID = in.Topics[0].Topic, in.Topics[0].TopicID
		of.HighWatermark, of.LastStableOffset, of.RecordBatches = end, end, all
		answered.Partitions = append(answered.Partitions, of)
		resp.Topics = append(resp.Topics, answered)
		return resp, nil, true
	})
}

// A live partition that is halted at an unreadable batch is positioned before it, and can be rebuilt up to
// there: to the halt, or into a sweep that ends there.
func TestWhatCannotBeReadBehindItsEndIsNothingToAReplay(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string][]ledger.Position{
		"up to it":                            {ledger.At(10)},
		"in a sweep":                          {{From: 0, To: 10, Hash: 1 << 63}, ledger.At(10)},
		"from one part of a sweep to another": {{From: 5, To: 10, Hash: 1 << 62}, {From: 5, To: 10, Hash: 1 << 63}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			w.send(0, some("a", 10, 1)...)
			w.send(0, some("b", 10, 1)...)
			r, shadow := w.replay(1, nil)
			w.damages(20)
			for _, at := range limits {
				require.NoError(t, toAll(t.Context(), r, at))
				got, err := shadow.positions(0)
				require.NoError(t, err)
				require.Equal(t, spread(at, of), got)
			}
			halt := new(*health.Halt)
			require.ErrorAs(t, toAll(t.Context(), r, ledger.At(20)), halt)
			require.Equal(t, health.HaltFormat, (*halt).Reason)
		})
	}
}

func TestABrokerThatDoesNotHaveAnOffsetYetIsNoLogThatMoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.send(0, some("m", 20, 1)...)
	r, shadow := w.replay(1, nil)
	var behind atomic.Int32
	w.cluster.ControlKey(int16(kmsg.Fetch), func(k kmsg.Request) (kmsg.Response, error, bool) {
		w.cluster.KeepControl()
		if behind.Add(1) > 3 {
			return nil, nil, false
		}
		in := k.(*kmsg.FetchRequest)
		resp := in.ResponseKind().(*kmsg.FetchResponse)
		answered, of := kmsg.NewFetchResponseTopic(), kmsg.NewFetchResponseTopicPartition()
		answered.Topic, answered.TopicID = in.Topics[0].Topic, in.Topics[0].TopicID
		of.ErrorCode = kerr.OffsetOutOfRange.Code
		answered.Partitions = append(answered.Partitions, of)
		resp.Topics = append(resp.Topics, answered)
		return resp, nil, true
	})
	require.NoError(t, toAll(t.Context(), r, ledger.At(20)))
	require.Equal(t, "20", shadow.at(0))
	require.Greater(t, behind.Load(), int32(3))
}

// An unclean election, after the shadow has passed the log's present end.
func TestAReplayThatIsPastTheLogsEndHaltsOnceThatIsSure(t *testing.T) {
	if testing.Short() {
		t.Log("waits as long as a leader may take to know its end")
	}
	t.Parallel()
	w := newWorld(t, 1)
	w.send(0, some("m", 20, 1)...)
	r, shadow := w.replay(1, nil)
	shadow.do(func() { shadow.stands("events/0", "30") })
	began := time.Now()
	halt := new(*health.Halt)
	require.ErrorAs(t, toAll(t.Context(), r, ledger.At(35)), halt)
	require.Equal(t, health.HaltTruncated, (*halt).Reason)
	require.GreaterOrEqual(t, time.Since(began), start.ConfirmFor)
}
