package ingest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/retry"
)

// Run consumes until ctx ends. It returns when everything that it started has ended, after the pieces in
// flight, the last commits and leaving the group.
func (c *Consumer) Run(ctx context.Context) error {
	if err := c.awaitTopics(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	c.membership.outside(errJoining)
	group, err := c.join()
	if err != nil {
		return fmt.Errorf("join group %s: %w", c.Group, err)
	}
	err = c.generations(ctx, group)
	c.leave(group)
	return err
}

// generations runs one generation after another until ctx ends.
func (c *Consumer) generations(ctx context.Context, group Group) error {
	wait := retry.ForEver.Start()
	var logged retry.LogLimit
	for {
		generation, err := group.Next(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the context has ended
		case err != nil:
			err = kafkaconn.ExplainJoin(ctx, c.kafka, c.Group, c.SessionTimeout, err)
			if err := c.final(ctx, err); err != nil {
				return fmt.Errorf("join group %s: %w", c.Group, err)
			}
			c.membership.outside(err)
			// An error code from the coordinator (the group is rebalancing, or has no coordinator yet) usually
			// disappears with the next attempt. It is logged only if it doesn't.
			if _, answered := errors.AsType[kafka.Error](err); answered {
				logged.Delay()
			}
			if logged.Due(health.WaitTold) {
				c.Log.Warn("couldn't join the group, trying again", zap.String("group", c.Group), zap.Error(err))
			}
			_ = wait.Next(ctx) // Next ends with the context
			continue
		}
		wait.Reset()
		logged.Reset()
		c.generation(ctx, generation)
	}
}

// generation starts a worker for every assigned partition. It ends when the group ends the generation, or with
// ctx.
func (c *Consumer) generation(ctx context.Context, g *Generation) {
	var all sync.WaitGroup
	com := newCommits(g.Commit, c.Log)
	workers := c.assigned(g, com)
	c.mu.Lock()
	c.current, c.workers = g, workers
	c.mu.Unlock()
	c.membership.joined(g.ID)
	c.Log.Info("generation began", zap.Int32("generation", g.ID), zap.String("member", g.Member), zap.Int("partitions", len(workers)))
	// The generation's own context ends with an error other than Canceled, and isn't derived from the process's
	// context.
	start := func(run func(context.Context)) {
		g.Start(func(generation context.Context) {
			ctx, cancel := context.WithCancelCause(ctx)
			stop := context.AfterFunc(generation, func() { cancel(errGenerationEnded) })
			defer stop()
			run(ctx)
			if ctx.Err() != nil {
				// If a function returned at the end of the process before the group is closed, the group would
				// rejoin only to leave, and would wait for a rebalance of all members. In order: the context
				// ends, Next returns, the group is closed, the generation ends.
				<-generation.Done()
			}
			cancel(nil)
		})
	}
	all.Add(len(workers))
	for _, w := range workers {
		start(func(ctx context.Context) { defer all.Done(); w.run(ctx) })
	}
	start(func(ctx context.Context) {
		com.run(ctx, c.CommitInterval, &all)
		c.membership.left(g.ID)
		c.mu.Lock()
		if c.current == g { // the next generation doesn't wait for one that was over at its start
			c.workers = nil // they have stopped; other members may own their partitions next
		}
		c.mu.Unlock()
	})
	start(func(ctx context.Context) { c.report(ctx, workers, &all) })
	start(func(ctx context.Context) { c.forgetRules(ctx); <-ctx.Done() })
	start(func(ctx context.Context) { c.watchGrowth(ctx) })
	start(func(ctx context.Context) { c.watchEnds(ctx, workers) })
	start(func(ctx context.Context) { c.watchIdentities(ctx, workers) })
}

// forgetRules removes the texts of rules that are no longer in use. It tries once; the next generation tries
// again.
func (c *Consumer) forgetRules(ctx context.Context) {
	own := fingerprintOf(c.RulesText)
	if own == 0 {
		return
	}
	err := c.shards.each(func(i int, s Standings) error {
		removed, err := s.ForgetRules(ctx, own)
		if removed > 0 {
			c.Log.Info("rules that nothing is by any more are no longer kept"+onShard(i, c.shards.count()), zap.Int("removed", removed))
		}
		return err
	})
	if err != nil {
		c.Log.Debug("rules that nothing is by any more are still kept", zap.Error(err))
	}
}

var errGenerationEnded = errors.New("the generation has ended")

func (c *Consumer) assigned(g *Generation, com *commits) []*worker {
	var all []*worker
	for _, topic := range slices.Sorted(maps.Keys(g.Assignments)) {
		for _, p := range g.Assignments[topic] {
			all = append(all, c.worker(topic, p, com))
		}
	}
	return all
}

// leave leaves the group. It doesn't wait longer than ShutdownTime allows for a broker that hangs.
func (c *Consumer) leave(group Group) {
	left := make(chan error, 1)
	go func() { left <- group.Close() }()
	select {
	case err := <-left:
		if err != nil {
			c.Log.Warn("couldn't leave the group; its session will run out", zap.Error(err))
		}
	case <-time.After(c.ShutdownTime * 9 / 10): // the rest is for the remaining shutdown
		c.Log.Warn("the broker doesn't answer; left without saying so, the session will run out")
	}
}
