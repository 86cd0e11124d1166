package ingest

import (
	"context"
	"fmt"
	"maps"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/produce"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ledger/workers"
)

// letterBox takes dead letters, or answers with an error code.
type letterBox struct {
	mu    sync.Mutex
	taken map[string]int // number of writes, by the original's partition and offset
	tries int
	code  func(partition int32) int16
	// refuses returns an error code for the time of a dead letter; nil: every time is accepted.
	refuses func(written time.Time) (code int16)
	// throttle is how long a partition's connection isn't read after a successful write (KIP-219): writes in
	// that time get no answer.
	throttle time.Duration
	muted    map[int32]time.Time
	writes   int // number of successful writes
	most     int // maximum dead letters per write; 0: any. A larger write is refused, and throttled too
}

func (l *letterBox) produce(m kafka.Request) (kafka.Response, error) {
	r, ok := m.(*produce.Request)
	if !ok {
		return nil, &net.OpError{Op: "ask", Err: fmt.Errorf("nobody answers %T in this test", m)}
	}
	l.mu.Lock()
	l.tries++
	p := r.Topics[0].Partitions[0]
	if time.Now().Before(l.muted[p.Partition]) {
		l.mu.Unlock()
		time.Sleep(10 * time.Second)
		return nil, context.DeadlineExceeded
	}
	defer l.mu.Unlock()
	code := l.code(p.Partition)
	if l.throttle > 0 && code == 0 {
		l.muted[p.Partition] = time.Now().Add(l.throttle)
	}
	var offsets []string
	for code == 0 {
		rec, err := p.RecordSet.Records.ReadRecord()
		if err != nil {
			break
		}
		if l.refuses != nil {
			if code = l.refuses(rec.Time); code != 0 {
				break
			}
		}
		offset := ""
		for _, h := range rec.Headers {
			if h.Key == "standings-offset" {
				offset = string(h.Value)
			}
		}
		offsets = append(offsets, fmt.Sprint(p.Partition, "@", offset))
	}
	if l.most > 0 && len(offsets) > l.most {
		code, offsets = int16(kafka.MessageSizeTooLarge), nil
	}
	for _, o := range offsets {
		l.taken[o]++
	}
	if code == 0 {
		l.writes++
	}
	return &produce.Response{ThrottleTimeMs: int32(l.throttle.Milliseconds()), Topics: []produce.ResponseTopic{{Topic: r.Topics[0].Topic, Partitions: []produce.ResponsePartition{{Partition: p.Partition, ErrorCode: code}}}}}, nil
}

// tried returns the number of writes, including refused ones.
func (l *letterBox) tried() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tries
}

// all returns how often each dead letter was taken.
func (l *letterBox) all() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.taken)
}

// Because of a wrong clock, the broker refuses a dead letter for its time. Once the clock is right, the dead
// letter is written with the time of the new attempt, not of the first one.
func TestALetterThatIsTriedAgainHasTheTimeOfThat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, 1, nil)
		right := time.Now().Add(2 * time.Hour)
		box := &letterBox{taken: map[string]int{}, code: func(int32) int16 { return 0 }}
		box.refuses = func(written time.Time) int16 {
			if now := time.Now(); now.Before(right) || now.Sub(written) > time.Hour {
				return int16(kafka.InvalidTimestamp)
			}
			return 0
		}
		b.logs.produce = box.produce
		b.logs.add(0, 0, []byte("bad"))
		b.send(0, some("a", 10, 5)...)
		stop := b.run()
		defer stop()
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, workers.StateHalted, b.workers[0].status.Line().State)
		time.Sleep(time.Until(right))
		b.counts(time.Minute)
		require.Len(t, box.all(), 1)
		require.Equal(t, workers.StateRunning, b.workers[0].status.Line().State)
	})
}

// A quota lets one set of dead letters through per minute, or at short intervals. Every flow writes at least
// one set, and later flows don't write it again.
func TestDeadLettersUnderAQuotaGetThrough(t *testing.T) {
	const bad, each = 2000, 1000
	const sets = bad*(each+1<<10)/(256<<10) + 1 // sets of 256 KiB; a dead letter takes 1 KiB more than its original
	for name, throttle := range map[string]time.Duration{"long": time.Minute, "short": 700 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t, 1, nil)
				box := &letterBox{
					taken: map[string]int{}, code: func(int32) int16 { return 0 },
					throttle: throttle, muted: map[int32]time.Time{},
				}
				b.logs.produce = box.produce
				b.send(0, some("before-", 10, 5)...)
				var values [][]byte
				for range bad {
					values = append(values, make([]byte, each))
				}
				b.logs.add(0, 1, values...)
				b.send(0, some("after-", 10, 5)...)
				stop := b.run()
				defer stop()
				if throttle > time.Second {
					time.Sleep(3*time.Minute + 30*time.Second)
					l := b.workers[0].status.Line()
					require.Equal(t, workers.StateWaiting, l.State)
					require.Equal(t, health.WaitsDeadLetters, l.Reason)
					require.Contains(t, l.Remedy, "producer_byte_rate")
					require.Zero(t, b.consumer.Budget.Used())
				}
				b.counts(2 * sets * (throttle + 4*time.Second))
				require.Len(t, box.all(), bad, "every letter is there")
				for key, times := range box.all() {
					require.Equal(t, 1, times, key)
				}
				require.LessOrEqual(t, box.writes, sets+1)
				require.Equal(t, box.writes, box.tried(), "and nothing is written that isn't read")
			})
		})
	}
}

// A set that is refused for its size uses up the quota all the same. The smaller sets into which it is split
// wait for the quota; otherwise no flow would get to write one.
func TestDeadLettersThatAQuotaAndTheirTopicHoldBackGetThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bad = 20
		b := newBubble(t, 1, nil)
		box := &letterBox{
			taken: map[string]int{}, code: func(int32) int16 { return 0 },
			throttle: 13 * time.Second, muted: map[int32]time.Time{}, most: 1,
		}
		b.logs.produce = box.produce
		for range bad {
			b.logs.add(0, 0, []byte("bad"))
		}
		b.send(0, some("after-", 10, 5)...)
		stop := b.run()
		defer stop()
		b.counts(3 * bad * box.throttle)
		require.Len(t, box.all(), bad)
		require.LessOrEqual(t, box.writes, bad+1)
		require.LessOrEqual(t, box.tried(), 2*bad)
	})
}

// During an outage under a quota, the worker tries one small write at a time as well.
func TestAnOutageUnderAQuotaIsTriedByOneLetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, 1, nil)
		until := time.Now().Add(time.Hour)
		box := &letterBox{
			taken: map[string]int{}, throttle: 13 * time.Second, muted: map[int32]time.Time{},
			code: func(int32) int16 {
				if time.Now().Before(until) {
					return int16(kafka.NotEnoughReplicas)
				}
				return 0
			},
		}
		b.logs.produce = box.produce
		b.logs.add(0, 0, []byte("bad"), []byte("bad"), []byte("bad"))
		b.send(0, some("after-", 10, 5)...)
		stop := b.run()
		defer stop()
		time.Sleep(time.Minute)
		synctest.Wait()
		read := b.consumer.Stats.Records.Load()
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		require.Equal(t, read, b.consumer.Stats.Records.Load(), "nothing is read again meanwhile")
		time.Sleep(time.Until(until))
		b.counts(2 * time.Minute)
		require.Len(t, box.all(), 3)
	})
}
