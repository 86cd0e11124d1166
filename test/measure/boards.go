package main

// The cost of many boards: memory while the backlog is read, and processor time at a low rate afterwards.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// boards publishes events to the given number of boards, drawn with equal probability, and lets a consumer read them;
// then it publishes some hundred events a second.
func (m *measurement) boards(ctx context.Context, boards int) error {
	if err := m.toBoards(ctx, boards, m.events, 0); err != nil {
		return err
	}
	c, err := m.start(ctx)
	if err != nil {
		return err
	}
	begun, before := time.Now(), c.usage()
	redisBefore, err := m.redisCPU(ctx)
	if err != nil {
		return err
	}
	if err := m.caughtUp(ctx); err != nil {
		return err
	}
	took := time.Since(begun)
	quiet, used := time.Now(), c.usage()
	const each, rate = 2000, 100
	if err := m.toBoards(ctx, boards, each, rate); err != nil {
		return err
	}
	idle := (c.usage() - used) / time.Since(quiet).Seconds()
	fmt.Printf("at %d events a second      %.2f cores, %s resident\n", rate, idle, c.status("VmRSS"))
	return m.report(ctx, c, int64(m.events), took, before, redisBefore)
}

// toBoards publishes n events, at rate events per second if rate is not 0.
func (m *measurement) toBoards(ctx context.Context, boards, n, rate int) error {
	for i := range n {
		value := fmt.Appendf(nil, `{"user_id":"player-%07d","board":"board-%06d","points":5}`, rand.IntN(m.members), rand.IntN(boards))
		if rate > 0 {
			time.Sleep(time.Second / time.Duration(rate))
		}
		m.client.Produce(ctx, &kgo.Record{Value: value}, nil)
		if i%10_000 == 0 {
			if err := m.client.Flush(ctx); err != nil {
				return fmt.Errorf("publish: %w", err)
			}
		}
	}
	if err := m.client.Flush(ctx); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	return nil
}
