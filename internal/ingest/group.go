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

	"github.com/standings/standings/internal/ingest/commits"
	"github.com/standings/standings/internal/ingest/group"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/report"
	"github.com/standings/standings/internal/ingest/rulebook"
	"github.com/standings/standings/internal/ingest/shards"
	"github.com/standings/standings/internal/ingest/topics"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/retry"
)

// Run consumes until ctx ends. It returns when everything that it started has ended, after the pieces in
// flight, the last commits and leaving the group.
func (c *Consumer) Run(ctx context.Context) error {
	if err := c.awaitTopics(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	c.membership.Outside(group.ErrJoining)
	joined, err := c.join()
	if err != nil {
		return fmt.Errorf("join group %s: %w", c.Group, err)
	}
	err = c.generations(ctx, joined)
	c.leave(joined)
	return err
}

// join joins the consumer group.
func (c *Consumer) join() (group.Group, error) {
	brokers := c.GroupBrokers
	if brokers == nil {
		brokers = c.Brokers
	}
	config := kafka.ConsumerGroupConfig{
		ID: c.Group, Brokers: brokers, Dialer: c.Dialer, Topics: c.Topics,
		GroupBalancers:    []kafka.GroupBalancer{c.balancer},
		HeartbeatInterval: c.Heartbeat, SessionTimeout: c.SessionTimeout, RebalanceTimeout: c.SessionTimeout,
		JoinGroupBackoff: time.Second, StartOffset: kafka.FirstOffset, Timeout: c.Timeout,
	}
	if c.Join != nil {
		return c.Join(config)
	}
	return group.Join(config, c.kafka, c.Log)
}

// generations runs one generation after another until ctx ends.
func (c *Consumer) generations(ctx context.Context, joined group.Group) error {
	wait := retry.ForEver.Start()
	var logged retry.LogLimit
	for {
		generation, err := joined.Next(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the context has ended
		case err != nil:
			err = kafkaconn.ExplainJoin(ctx, c.kafka, c.Group, c.SessionTimeout, err)
			if err := c.final(ctx, err); err != nil {
				return fmt.Errorf("join group %s: %w", c.Group, err)
			}
			c.membership.Outside(err)
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
func (c *Consumer) generation(ctx context.Context, g *group.Generation) {
	var all sync.WaitGroup
	com := commits.New(g.Commit, c.Log)
	workers := c.assigned(g, com)
	c.mu.Lock()
	c.current, c.workers = g, workers
	c.mu.Unlock()
	c.membership.Joined(g.ID)
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
	lines := make([]report.Worker, 0, len(workers))
	for _, w := range workers {
		lines = append(lines, report.Worker{Partition: w.Partition, Status: w.status})
		start(func(ctx context.Context) { defer all.Done(); w.run(ctx) })
	}
	start(func(ctx context.Context) {
		com.Run(ctx, c.CommitInterval, &all)
		c.membership.Left(g.ID)
		c.mu.Lock()
		if c.current == g { // the next generation doesn't wait for one that was over at its start
			c.workers = nil // they have stopped; other members may own their partitions next
		}
		c.mu.Unlock()
	})
	start(func(ctx context.Context) { c.reporter.Run(ctx, lines, &all) })
	start(func(ctx context.Context) { c.forgetRules(ctx); <-ctx.Done() })
	start(func(ctx context.Context) { c.watchGrowth(ctx) })
	start(func(ctx context.Context) { c.watchEnds(ctx, workers) })
	start(func(ctx context.Context) { c.watchIdentities(ctx, workers) })
}

// forgetRules removes the texts of rules that are no longer in use. It tries once; the next generation tries
// again.
func (c *Consumer) forgetRules(ctx context.Context) {
	own := rulebook.FingerprintOf(c.RulesText)
	if own == 0 {
		return
	}
	err := c.shards.Each(func(i int, s shards.Standings) error {
		removed, err := s.ForgetRules(ctx, own)
		if removed > 0 {
			c.Log.Info("removed unused rules"+shards.On(i, c.shards.Count()), zap.Int("removed", removed))
		}
		return err
	})
	if err != nil {
		c.Log.Debug("could not remove unused rules", zap.Error(err))
	}
}

var errGenerationEnded = errors.New("the generation has ended")

func (c *Consumer) assigned(g *group.Generation, com *commits.Pending) []*worker {
	var all []*worker
	for _, topic := range slices.Sorted(maps.Keys(g.Assignments)) {
		for _, p := range g.Assignments[topic] {
			all = append(all, c.worker(topic, p, com))
		}
	}
	return all
}

// leave leaves the group. It doesn't wait longer than ShutdownTime allows for a broker that hangs.
func (c *Consumer) leave(joined group.Group) {
	left := make(chan error, 1)
	go func() { left <- joined.Close() }()
	select {
	case err := <-left:
		if err != nil {
			c.Log.Warn("couldn't leave the group; its session will run out", zap.Error(err))
		}
	case <-time.After(c.ShutdownTime * 9 / 10): // the rest is for the remaining shutdown
		c.Log.Warn("the broker doesn't answer; left without saying so, the session will run out")
	}
}

// awaitTopics waits until every topic exists, checks the topics' configuration, and creates their dead-letter
// topics. If the consumer joined the group before all topics exist, the existing topics would not be read.
func (c *Consumer) awaitTopics(ctx context.Context) error {
	topics := topics.Checker{Kafka: c.kafka, Group: c.Group, Topics: c.Topics, Rules: &c.Rules, DeadLetters: c.deadLetters, Log: c.Log}
	var logged retry.LogLimit
	wait := retry.ForEver.Start()
	for {
		err := topics.Check(ctx)
		if err == nil || ctx.Err() != nil {
			return nil //nolint:nilerr // done, or the context has ended
		}
		if err := c.final(ctx, err); err != nil {
			return err
		}
		c.membership.Outside(err)
		if logged.Due(health.WaitTold) {
			c.Log.Warn("waiting for Kafka", zap.Error(err))
		}
		if wait.Next(ctx) != nil {
			return nil //nolint:nilerr // the context has ended
		}
	}
}

// final returns the error with which the process ends, or nil if err may be transient. If a broker shuts down
// during authentication, kafka-go reports that the broker refuses the user, so Refusal asks the brokers again.
func (c *Consumer) final(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, kafka.SASLAuthenticationFailed):
		return c.Refusal(ctx)
	case errors.As(err, new(*topics.CompactError)), kafkaconn.Classify(err).AtStart() == ledger.Refuse:
		return err
	}
	return nil
}
