package chaos

// How long readers see something old: the time in which the standings lack what the log
// had a second before.

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	fresh      = time.Second // what is counted within it is counted at once
	lookEvery  = 50 * time.Millisecond
	askWithin  = time.Second
	remembered = 100 // looks at the log's ends
)

// staleness looks at the log and the ledger all the while.
type staleness struct {
	mu    sync.Mutex
	ends  []endsAt
	since time.Time     // it is stale from then on; zero: it isn't
	spent time.Duration // in which it was, before
}

type endsAt struct {
	at   time.Time
	ends map[int]int64
}

func startStaleness(t *testing.T, w *world) *staleness {
	t.Helper()
	client := w.kafka.Client(t, kgo.RetryTimeout(askWithin), kgo.RequestRetries(0), kgo.DialTimeout(askWithin))
	admin := kadm.NewClient(client)
	s := &staleness{}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	every := func(look func()) {
		running.Go(func() {
			for {
				look()
				select {
				case <-ctx.Done():
					return
				case <-time.After(lookEvery):
				}
			}
		})
	}
	every(func() { s.askLog(ctx, admin, w.place.Topic) })
	every(func() { s.askLedger(ctx, w) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return s
}

// askLog notes where the log ends. While it can't be asked it doesn't grow, or nobody
// could know.
func (s *staleness) askLog(ctx context.Context, admin *kadm.Client, topic string) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	now := time.Now()
	listed, err := admin.ListCommittedOffsets(ctx, topic)
	if err != nil || listed.Error() != nil {
		return
	}
	ends := map[int]int64{}
	listed.Each(func(o kadm.ListedOffset) { ends[int(o.Partition)] = o.Offset })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends = append(s.ends, endsAt{now, ends})
	s.ends = s.ends[max(0, len(s.ends)-remembered):]
}

// askLedger sees whether what the log had a second ago counts.
func (s *staleness) askLedger(ctx context.Context, w *world) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	want := s.past(time.Now().Add(-fresh))
	if want == nil {
		return
	}
	short := w.short(ctx, want) != ""
	s.mu.Lock()
	defer s.mu.Unlock()
	switch now := time.Now(); {
	case short && s.since.IsZero():
		s.since = now
	case !short && !s.since.IsZero():
		s.spent += now.Sub(s.since)
		s.since = time.Time{}
	}
}

func (s *staleness) past(at time.Time) map[int]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.ends) - 1; i >= 0; i-- {
		if s.ends[i].at.Before(at) {
			return s.ends[i].ends
		}
	}
	return nil
}

// total is the time in which the standings were stale, ever.
func (s *staleness) total() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() {
		return s.spent
	}
	return s.spent + time.Since(s.since)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
