package main

// How long a rebuild holds ingestion up, and what readers notice of it.

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// rebuild rebuilds the boards of so many members, three times, while events come at a
// steady rate.
func (m *measurement) rebuild(ctx context.Context) error {
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
		// It ends by being stopped, which is no error here.
		_ = m.produce(producing, "--count", "100000000", "--rate", strconv.Itoa(m.rate))
	})
	defer traffic.Wait()
	defer stop()
	for range 3 {
		if err := m.rebuildOnce(ctx); err != nil {
			return err
		}
	}
	stop()
	traffic.Wait()
	if err := m.caughtUp(ctx); err != nil {
		return err
	}
	return c.stop()
}

// everyMember publishes one event of each.
func (m *measurement) everyMember(ctx context.Context) error {
	return m.everyMemberAt(ctx, time.Time{})
}

// everyMemberAt publishes them with a record's time; the zero time is now.
func (m *measurement) everyMemberAt(ctx context.Context, at time.Time) error {
	var all sync.WaitGroup
	var failed error
	for i := range m.members {
		all.Add(1)
		m.client.Produce(ctx, &kgo.Record{Timestamp: at, Value: fmt.Appendf(nil, `{"user_id":"member-%d","points":%d}`, i, i%1000)}, func(_ *kgo.Record, err error) {
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

func (m *measurement) rebuildOnce(ctx context.Context) error {
	board := fmt.Sprintf("%s:{0}:global:yearly:%d", m.topic, time.Now().UTC().Year())
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var beside sync.WaitGroup
	var held, worst time.Duration
	beside.Go(func() { held = m.watchHold(watching) })
	beside.Go(func() { worst = m.watchReads(watching, board) })
	if err := m.redis.Do(ctx, "slowlog", "reset").Err(); err != nil {
		return fmt.Errorf("empty Redis's list of slow commands: %w", err)
	}
	cmd := exec.CommandContext(ctx, m.consumer, "rebuild", "--json")
	cmd.Env = m.env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	stop()
	beside.Wait()
	if err != nil {
		return fmt.Errorf("rebuild: %w\n%s", err, stderr.Bytes())
	}
	var said struct {
		Swapped bool  `json:"swapped"`
		Records int64 `json:"records"`
		TookMS  int64 `json:"took_ms"`
		HeldMS  int64 `json:"held_ms"`
		Holds   int   `json:"holds"`
	}
	if err := json.Unmarshal(out, &said); err != nil || !said.Swapped {
		return fmt.Errorf("rebuild said %s: %w", strings.TrimSpace(string(out)), err)
	}
	slow, err := m.redis.SlowLogGet(ctx, 128).Result()
	if err != nil {
		return fmt.Errorf("ask Redis for its slow commands: %w", err)
	}
	slowest, what := time.Duration(0), "none"
	for _, l := range slow {
		if l.Duration > slowest {
			slowest, what = l.Duration, strings.Join(l.Args[:min(2, len(l.Args))], " ")
		}
	}
	members, err := m.redis.ZCard(ctx, board).Result()
	if err != nil {
		return fmt.Errorf("count the members of %s: %w", board, err)
	}
	fmt.Printf("%d members in each of three windows, %d records read in %.1f s; ingestion held %d times, at last for %d ms (all seen from outside: %v); the slowest of all reads took %v, and of Redis's commands (those above 10 ms) %v: %s\n",
		members, said.Records, float64(said.TookMS)/1000, said.Holds, said.HeldMS, held.Round(time.Millisecond), worst.Round(100*time.Microsecond), slowest, what)
	return nil
}

// watchHold sums how long there is a hold.
func (m *measurement) watchHold(ctx context.Context) (held time.Duration) {
	key := m.topic + ":{0}:hold"
	for last := time.Now(); ctx.Err() == nil; {
		n, err := m.redis.Exists(ctx, key).Result()
		now := time.Now()
		if err == nil && n == 1 {
			held += now.Sub(last)
		}
		last = now
		time.Sleep(500 * time.Microsecond) // its grain
	}
	return held
}

// watchReads reads the first ten of a board, and returns how long the slowest took.
func (m *measurement) watchReads(ctx context.Context, board string) (worst time.Duration) {
	for ctx.Err() == nil {
		began := time.Now()
		if rows, err := m.redis.ZRevRangeWithScores(ctx, board, 0, 9).Result(); ctx.Err() == nil && (err != nil || len(rows) != 10) {
			fmt.Printf("a read failed: %d rows, %v\n", len(rows), err)
		}
		if ctx.Err() == nil {
			worst = max(worst, time.Since(began))
		}
		time.Sleep(2 * time.Millisecond) // the pace of a few readers
	}
	return worst
}
