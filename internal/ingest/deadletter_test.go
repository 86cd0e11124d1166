package ingest

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ledger/workers"
)

// refuse makes the broker answer writes of dead letters with a code that may depend on the partition and the
// size of the write.
func (w *world) refuse(code func(partition int32, size int) int16) {
	w.cluster.ControlKey(0, func(r kmsg.Request) (kmsg.Response, error, bool) {
		w.cluster.KeepControl()
		req := r.(*kmsg.ProduceRequest)
		t := req.Topics[0]
		if t.Topic != event.DeadLetterTopic(topic) {
			return nil, nil, false
		}
		c := code(t.Partitions[0].Partition, len(t.Partitions[0].Records))
		if c == 0 {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.ProduceResponse)
		p := kmsg.NewProduceResponseTopicPartition()
		p.Partition, p.ErrorCode = t.Partitions[0].Partition, c
		rt := kmsg.NewProduceResponseTopic()
		rt.Topic, rt.Partitions = t.Topic, []kmsg.ProduceResponseTopicPartition{p}
		resp.Topics = append(resp.Topics, rt)
		return resp, nil, true
	})
}

const (
	codeFewReplicas  = 19
	codeUnauthorized = 29
)

func TestNothingIsAppliedBeforeItsDeadLettersAreAcknowledged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	var denied atomic.Bool
	denied.Store(true)
	w.refuse(func(partition int32, _ int) int16 {
		if denied.Load() && partition == 0 {
			return codeFewReplicas
		}
		return 0
	})
	for p := range 2 {
		w.send(p, some("a", 5, 5)...)
		w.sendRaw(p, []byte("bad"))
		w.send(p, some("b", 5, 5)...)
	}
	r := w.worker(0, nil)
	w.workerOf(r.consumer, 1)
	eventually(t, "the other partition runs on", func() bool { return w.standings.at(1) == "11" })
	eventually(t, "it says why it waits", func() bool {
		l := r.status.Line()
		return l.State == workers.StateWaiting && strings.Contains(l.What, event.DeadLetterTopic(topic))
	})
	// Earlier events may be applied, if they were read in a separate response.
	require.NotContains(t, []string{"6", "11"}, w.standings.at(0))
	denied.Store(false)
	w.reaches(0, 1)
	for _, l := range w.deadLetters() { // the attempt to write to the topic has written it twice
		require.Equal(t, "5", l["standings-offset"])
		require.Equal(t, "bad", l["value"])
	}
	eventually(t, "it runs", func() bool { return r.status.Line().State == workers.StateRunning })
}

func TestABatchWithDeadLettersThatFailedIsNeverSwept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	var denied atomic.Bool
	denied.Store(true)
	w.refuse(func(int32, int) int16 {
		if denied.Load() {
			return codeUnauthorized
		}
		return 0
	})
	// More dead letters than are gathered, so that the write in the middle of the response fails.
	const n = 2 * 256
	var records []*kgo.Record
	for range n {
		records = append(records, &kgo.Record{Value: []byte("bad")})
	}
	require.NoError(t, w.client.ProduceSync(t.Context(), records...).FirstErr())
	r := w.worker(0, nil)
	eventually(t, "it halts", func() bool { return r.status.Line().State == workers.StateHalted })
	time.Sleep(1500 * time.Millisecond)
	require.Equal(t, "0", w.standings.at(0))
	require.Equal(t, health.HaltKafka, r.status.Line().Reason)
	w.said(1, "partition halted")
	denied.Store(false)
	w.reaches(0)
	w.counted(n)
	offsets := map[string]bool{}
	for _, l := range w.deadLetters() {
		offsets[l["standings-offset"]] = true
	}
	require.Len(t, offsets, n)
	require.Equal(t, int64(n), w.stats.Dead(event.Malformed))
}

func TestAWriteOfDeadLettersEndsWithItsContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.refuse(func(int32, int) int16 { return codeFewReplicas })
	w.sendRaw(0, []byte("bad"))
	r := w.worker(0, nil)
	eventually(t, "it waits", func() bool { return r.status.Line().State == workers.StateWaiting })
	began := time.Now()
	r.stop(t)
	require.Less(t, time.Since(began), 30*time.Second)
	require.Equal(t, "0", w.standings.at(0))
}
