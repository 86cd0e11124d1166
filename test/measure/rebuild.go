package main

// How long a rebuild and a reshard delay ingestion, and how they affect readers.

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// rebuild rebuilds the boards with every member three times, while events arrive at a steady rate.
func (m *measurement) rebuild(ctx context.Context) error {
	return m.whileEventsCome(ctx, func() error {
		for range 3 {
			var said struct {
				Records int64
				TookMS  int64 `json:"took_ms"`
				HeldMS  int64 `json:"held_ms"`
			}
			worst, err := m.rewritten(ctx, &said, "rebuild", "--json")
			if err != nil {
				return err
			}
			fmt.Printf("%d records read in %.1f s; ingestion was held for %d ms; the slowest of all reads took %v\n",
				said.Records, float64(said.TookMS)/1000, said.HeldMS, worst.Round(100*time.Microsecond))
		}
		return nil
	})
}

// reshard copies the boards with every member to other numbers of shards, one after another, while events arrive at
// a steady rate.
func (m *measurement) reshard(ctx context.Context) error {
	return m.whileEventsCome(ctx, func() error {
		for _, to := range []int{3, 12, 1} {
			var said struct {
				From      int
				Standings int64
				HeldMS    int64 `json:"held_ms"`
				TookMS    int64 `json:"took_ms"`
			}
			if _, err := m.rewritten(ctx, &said, "reshard", "--to", strconv.Itoa(to), "--json"); err != nil {
				return err
			}
			m.shards = to
			fmt.Printf("%d to %d shards: %d standings in %.1f s, ingestion waited for %.1f s, %.0f standings a second\n", said.From, to,
				said.Standings, float64(said.TookMS)/1000, float64(said.HeldMS)/1000, 1000*float64(said.Standings)/float64(said.HeldMS))
		}
		return nil
	})
}

// whileEventsCome lets a consumer count every member, and then calls do while events arrive at a steady rate.
func (m *measurement) whileEventsCome(ctx context.Context, do func() error) error {
	if err := m.everyMember(ctx); err != nil {
		return err
	}
	c, err := m.start(ctx)
	if err != nil {
		return err
	}
	if err := m.caughtUp(ctx); err != nil {
		return err
	}
	producing, stop := context.WithCancel(ctx)
	var traffic sync.WaitGroup
	traffic.Go(func() {
		// It ends when it is stopped, which is not an error here.
		_ = m.produce(producing, "--count", "100000000", "--rate", strconv.Itoa(m.rate))
	})
	err = do()
	stop()
	traffic.Wait()
	if err != nil {
		return err
	}
	if err := m.caughtUp(ctx); err != nil {
		return err
	}
	return c.stop()
}

// everyMember publishes one event for each member.
func (m *measurement) everyMember(ctx context.Context) error {
	var all sync.WaitGroup
	var failed error
	for i := range m.members {
		all.Add(1)
		m.client.Produce(ctx, &kgo.Record{Value: fmt.Appendf(nil, `{"user_id":"member-%d","points":%d}`, i, i%1000)}, func(_ *kgo.Record, err error) {
			if err != nil && failed == nil {
				failed = err
			}
			all.Done()
		})
	}
	all.Wait()
	if failed != nil {
		return fmt.Errorf("publish: %w", failed)
	}
	return nil
}

// rewritten runs a command that replaces the boards. It returns the duration of the slowest read of the top ten
// meanwhile.
func (m *measurement) rewritten(ctx context.Context, said any, args ...string) (worst time.Duration, err error) {
	board := fmt.Sprintf("%s:{0}:global:yearly:%d", m.topic, time.Now().UTC().Year())
	watching, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() {
		for watching.Err() == nil {
			began := time.Now()
			err := m.redis.ZRevRangeWithScores(watching, board, 0, 9).Err()
			if watching.Err() == nil && err == nil {
				worst = max(worst, time.Since(began))
			}
			time.Sleep(2 * time.Millisecond) // the pace of a few readers
		}
	})
	cmd := exec.CommandContext(ctx, m.consumer, args...)
	cmd.Env = m.env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	stop()
	beside.Wait()
	if err == nil {
		err = json.Unmarshal(out, said)
	}
	if err != nil {
		return 0, fmt.Errorf("consumer %v: %w\n%s%s", args, err, out, stderr.Bytes())
	}
	return worst, nil
}
