package harness

// This file makes events for most tests, all at once or as continuous traffic.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Earned returns events of members over partitions, reproducible by the seed: with corrections, two boards,
// times in the last hours of today, and one bad event in a hundred.
func Earned(seed uint64, events, members, partitions int) []*kgo.Record {
	random := rand.New(rand.NewPCG(seed, 1))
	records := make([]*kgo.Record, events)
	now := time.Now()
	for i := range records {
		member := random.IntN(members)
		board, points := "global", random.IntN(500)-50
		if random.IntN(4) == 0 {
			board = "eu"
		}
		at := ofToday(now.Add(-time.Duration(random.IntN(4*3600*1000))*time.Millisecond), now).UnixMilli()
		value := fmt.Sprintf(`{"user_id":"m%d","points":%d,"board":%q,"occurred_at":%d}`, member, points, board, at)
		if random.IntN(100) == 0 {
			value = fmt.Sprintf(`{"user_id":"m%d","points":"many"}`, member)
		}
		records[i] = Record(member%partitions, value)
	}
	return records
}

// Traffic publishes events in the background.
type Traffic struct {
	place     *Place
	published atomic.Int64
	cancel    context.CancelFunc
	done      sync.WaitGroup
}

// Traffic publishes a few events continuously, until it is stopped.
func (p *Place) Traffic(t testing.TB, partitions int) *Traffic {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &Traffic{place: p, cancel: cancel}
	s.done.Go(func() {
		for seed := uint64(1000); ; seed++ {
			for _, r := range Earned(seed, 50, 300, partitions) {
				// The publishing itself is not cancelled, because what is published counts.
				p.Stream(context.WithoutCancel(ctx), t, r)
			}
			s.published.Add(50)
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
				return
			}
		}
	})
	t.Cleanup(s.Stop)
	return s
}

// Stop ends the traffic, and waits until all of it is acknowledged.
func (s *Traffic) Stop() {
	s.cancel()
	s.done.Wait()
	s.place.Await()
}

// More waits until a number of further events is published.
func (s *Traffic) More(t testing.TB, events int64) {
	t.Helper()
	until := s.published.Load() + events
	Eventually(t, Within, func() string {
		if n := s.published.Load(); n < until {
			return fmt.Sprintf("%d events are published, of %d", n, until)
		}
		return ""
	})
}

// Finish waits until everything counts, terminates the consumers, and compares the place with the oracle.
func (p *Place) Finish(t testing.TB) {
	t.Helper()
	p.AwaitCaughtUp(t, Within)
	p.TerminateAll(t)
	p.Check(t)
}

// Must fails the test if err is not nil.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
