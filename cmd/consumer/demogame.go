package main

// The demo's players, and what became of their events.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/clients"
	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/sample"
)

// demoGame counts what is published and what is consumed.
type demoGame struct {
	rate      float64 // events a second
	events    *sample.Generator
	luck      *rand.Rand
	someone   string // one of the players
	stats     *ingest.Stats
	consumer  atomic.Pointer[ingest.Consumer] // nil until it runs
	published atomic.Int64
}

var demoBoards = []string{"global", "eu", "us"}

const (
	streakSeconds = 8  // how long some are luckier than others
	streakRanks   = 25 // how far down luck reaches
	// playersWait is how many events the consumer may be behind before the players
	// take a breath: a demo that drowns shows nothing.
	playersWait = 200_000
)

func newDemoGame(f *demoFlags) (*demoGame, error) {
	events, err := sample.New(sample.Options{
		Seed: f.seed, Members: f.members, Skew: 0.9, Boards: demoBoards, BoardsPerEvent: 2, Spread: demoSpread,
		Bad: 0.01, Corrections: 0.03, PointsMin: 1, PointsMax: 100, Now: time.Now(),
	})
	if err != nil {
		return nil, cli.Usagef("%w", err)
	}
	first, _ := events.Next(nil)
	return &demoGame{
		rate: f.rate, events: events, luck: rand.New(rand.NewPCG(f.seed, 1)), someone: string(first.Key), stats: new(ingest.Stats),
	}, nil
}

// play publishes events until the context ends, and returns when all of them are
// acknowledged.
func (g *demoGame) play(ctx context.Context, cfg *config.Config) error {
	topic := cfg.Kafka.Topics[0]
	client, err := clients.NewKafka(&cfg.Kafka, topic)
	if err != nil {
		return err
	}
	defer clients.CloseKafka(client)
	pub := &publisher{client: client, topic: topic, patience: cfg.ShutdownTimeout, say: func(string) {}}
	pub.start(context.WithoutCancel(ctx), demoPartitions)
	g.deal(ctx, pub)
	err = pub.close()
	g.published.Store(pub.events.Load())
	return clients.ExplainKafka(ctx, err, &cfg.Kafka, topic)
}

func (g *demoGame) deal(ctx context.Context, pub *publisher) {
	src := &samples{generator: g.events, bad: map[string]int64{}}
	pace := pacer{rate: g.rate, begun: time.Now()}
	streak := 0
	for made := int64(0); ; made++ {
		now := pace.wait(ctx, made)
		g.published.Store(pub.events.Load())
		for g.published.Load()-g.stats.Consumed() > playersWait && ctx.Err() == nil {
			time.Sleep(paceStep)
			pace.begun = pace.begun.Add(paceStep)
			g.published.Store(pub.events.Load())
		}
		if ctx.Err() != nil {
			return
		}
		src.setNow(now)
		if made%int64(max(g.rate*streakSeconds, 1)) == 0 {
			streak = 1 + g.luck.IntN(streakRanks)
		}
		// Half of the events go by who is good, half by who is lucky now.
		g.events.SetShift(streak * int(made%2))
		o, _ := src.next()
		if pub.add(ctx, o) != nil {
			return // the end, or close says why
		}
	}
}

// drain waits until all that was published is consumed, or the consumer has ended;
// once ctx has, no longer than the limit.
func (g *demoGame) drain(ctx, consuming context.Context, limit time.Duration) {
	interrupted := ctx.Done()
	var late <-chan time.Time
	for g.stats.Consumed() < g.published.Load() {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-interrupted:
			interrupted, late = nil, time.After(limit)
		case <-late:
			return
		case <-consuming.Done():
			return
		}
	}
}

// summary adds up. What others published while the demo ran was consumed too.
func (g *demoGame) summary() string {
	s := g.stats
	return fmt.Sprintf("The players published %s events; %s were consumed: %s applied, %s dead-lettered, %s late, %s skipped, %s repeated.\n",
		units.Thousands(g.published.Load()), units.Thousands(s.Consumed()), units.Thousands(s.Applied.Load()), units.Thousands(s.DeadLettered()),
		units.Thousands(s.Late.Load()), units.Thousands(s.Skipped.Load()), units.Thousands(s.Repeated.Load()))
}

// trouble is what the consumer's workers say is the matter, empty if nothing.
func (g *demoGame) trouble() string {
	c := g.consumer.Load()
	if c == nil {
		return ""
	}
	for _, p := range c.Snapshot().Partitions {
		if p.Line.State != ingest.StateRunning {
			r := partitionReport{State: &p.Line.State, What: &p.Line.What}
			return p.Field + " " + r.trouble()
		}
	}
	return ""
}
