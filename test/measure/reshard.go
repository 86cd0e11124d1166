package main

// How long a reshard holds ingestion up, and how fast that is caught up with.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kadm"
)

// reshard copies the boards of so many members to other numbers of shards, one after another,
// while events come at a steady rate.
func (m *measurement) reshard(ctx context.Context) error {
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
	for _, to := range []int{3, 12, 1} {
		if err := m.reshardOnce(ctx, to); err != nil {
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

func (m *measurement) reshardOnce(ctx context.Context, to int) error {
	cmd := exec.CommandContext(ctx, m.consumer, "reshard", "--to", strconv.Itoa(to), "--json")
	cmd.Env = m.env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	done := make(chan catchUp, 1)
	go func() { done <- m.watchSwitch(ctx, to) }()
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("reshard: %w\n%s", err, stderr.Bytes())
	}
	var said struct {
		Switched  bool  `json:"switched"`
		From      int   `json:"from"`
		Standings int64 `json:"standings"`
		HeldMS    int64 `json:"held_ms"`
		TookMS    int64 `json:"took_ms"`
	}
	if err := json.Unmarshal(out, &said); err != nil || !said.Switched {
		return fmt.Errorf("reshard said %s: %w", strings.TrimSpace(string(out)), err)
	}
	m.shards = to
	caught := <-done
	if caught.err != nil {
		return caught.err
	}
	held := time.Duration(said.HeldMS) * time.Millisecond
	fmt.Printf("%d to %d shards: %d standings in %.1f s, ingestion waited for %.1f s, %.0f standings a second; %d events behind at the switch, and %.1f s later no more than come in 0.1 s\n",
		said.From, to, said.Standings, float64(said.TookMS)/1000, held.Seconds(), float64(said.Standings)/held.Seconds(), caught.behind, caught.took.Seconds())
	return nil
}

// catchUp is how far behind ingestion was at the switch, and how long that took to catch up with.
type catchUp struct {
	behind int64
	took   time.Duration
	err    error
}

func (m *measurement) watchSwitch(ctx context.Context, to int) (c catchUp) {
	c.err = until(ctx, func() (bool, error) {
		text, err := m.redis.Get(ctx, m.prefix+":{0}:shards").Result()
		if errors.Is(err, redis.Nil) {
			err = nil
		}
		return text == strconv.Itoa(to), err
	})
	if c.err != nil {
		return c
	}
	began := time.Now()
	own := *m
	own.shards = to
	if c.behind, c.err = own.behind(ctx); c.err != nil {
		return c
	}
	c.err = until(ctx, func() (bool, error) {
		n, err := own.behind(ctx)
		return n < int64(m.rate)/10, err
	})
	c.took = time.Since(began)
	return c
}

// behind is how many events aren't counted yet.
func (m *measurement) behind(ctx context.Context) (int64, error) {
	ends, err := m.admin.ListEndOffsets(ctx, m.topic)
	if err != nil {
		return 0, fmt.Errorf("list the ends of %s: %w", m.topic, err)
	}
	sum := int64(0)
	ends.Each(func(o kadm.ListedOffset) { sum += o.Offset })
	counted, _, err := m.counted(ctx)
	return sum - counted, err
}
