package demo

// This file publishes the players' events and counts what becomes of them.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/produce"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ledger/workers"
	"github.com/standings/standings/internal/retry"
	"github.com/standings/standings/internal/sample"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
)

// players publishes events and counts what is published and consumed.
type players struct {
	rate      float64 // events per second
	events    *sample.Generator
	luck      *rand.Rand
	someone   string // the id of one player
	stats     *counts.Stats
	consumer  atomic.Pointer[ingest.Consumer] // nil until the consumer runs
	published atomic.Int64
}

var boardNames = []string{"global", "eu", "us"}

const (
	streakSeconds = 8  // how long the same players are lucky
	streakRanks   = 25 // the largest shift in ranks for luck
	// playersWait is the number of events by which the consumer may be behind before the players pause. A
	// demo that falls behind shows nothing.
	playersWait = 200_000
	// dealEvery is the interval at which events are made, as many as the rate allows.
	dealEvery = 5 * time.Millisecond
	// stalled is how long Kafka may go without acknowledging anything: a laptop may be busy with other
	// work.
	stalled = 30 * time.Second
)

func newPlayers(f *flags) (*players, error) {
	events, err := sample.New(sample.Options{
		Seed: 1, Members: f.members, Skew: 1.1, Boards: boardNames, BoardsPerEvent: 2, Spread: spread,
		Bad: 0.01, Corrections: 0.03, PointsMin: 1, PointsMax: 100, Now: time.Now(),
	})
	if err != nil {
		return nil, cli.Usagef("%w", err)
	}
	first, _ := events.Next(nil)
	return &players{
		rate: f.rate, events: events, luck: rand.New(rand.NewPCG(1, 1)), someone: string(first.Key), stats: new(counts.Stats),
	}, nil
}

// play publishes events until the context ends, and returns when all of them are acknowledged.
func (g *players) play(ctx context.Context, cfg *config.Config) error {
	sending := context.WithoutCancel(ctx)
	pub, err := produce.Open(sending, produce.Options{Kafka: &cfg.Kafka, Topic: cfg.Kafka.Topics[0], Partitions: partitions, Patience: stalled})
	if err != nil {
		return err
	}
	g.deal(ctx, pub)
	closing, cancel := context.WithTimeout(sending, cfg.ShutdownTimeout)
	defer cancel()
	err = pub.Close(closing)
	g.published.Store(pub.Acknowledged())
	return err
}

func (g *players) deal(ctx context.Context, pub *produce.Publisher) {
	tick := time.NewTicker(dealEvery)
	defer tick.Stop()
	streak, made, due := 0, int64(0), 1.0
	var event sample.Event
	var buf, run []byte
	for {
		g.published.Store(pub.Acknowledged())
		for ; due >= 1 && g.published.Load()-g.stats.Consumed() <= playersWait; due-- {
			g.events.SetNow(time.Now())
			if made%int64(max(g.rate*streakSeconds, 1)) == 0 {
				streak = 1 + g.luck.IntN(streakRanks)
			}
			// Half of the events follow the players' skill, the other half the current luck.
			g.events.SetShift(streak * int(made%2))
			event, buf = g.events.Next(buf[:0])
			if made%arenaEvery == arenaEvery-1 && event.Reason == "" {
				run = appendRun(run[:0], g.luck, &event)
				event.Value = run
			}
			if pub.Publish(ctx, event.Key, event.Value) != nil {
				return // ctx has ended, or Close returns the error
			}
			made++
		}
		select {
		case <-tick.C:
			due = min(due, 1) + g.rate*dealEvery.Seconds()
		case <-ctx.Done():
			return
		}
	}
}

// drain waits until everything that was published is consumed, or the consumer has ended. Once ctx has
// ended it waits at most limit longer.
func (g *players) drain(ctx, consuming context.Context, limit time.Duration) {
	waiting, enough := context.WithCancel(consuming)
	defer enough()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(limit, enough) })()
	for g.stats.Consumed() < g.published.Load() && retry.Sleep(waiting, 10*time.Millisecond) == nil {
	}
}

// summary returns the totals. They include events that other processes published while the demo ran.
func (g *players) summary() string {
	s := g.stats
	more := "" // counts that only some configurations have
	if n := s.Early.Load(); n > 0 {
		more += fmt.Sprintf(", %s early", units.Thousands(n))
	}
	if n := s.Duplicates.Load(); n > 0 {
		more += fmt.Sprintf(", %s duplicates", units.Thousands(n))
	}
	return fmt.Sprintf("The players published %s events; %s were consumed: %s applied, %s dead-lettered, %s late, %s skipped, %s repeated%s.\n",
		units.Thousands(g.published.Load()), units.Thousands(s.Consumed()), units.Thousands(s.Applied.Load()), units.Thousands(s.DeadLettered()),
		units.Thousands(s.Late.Load()), units.Thousands(s.Skipped.Load()), units.Thousands(s.Repeated.Load()), more)
}

// trouble returns the first problem that the consumer's workers report; empty if there is none.
func (g *players) trouble() string {
	c := g.consumer.Load()
	if c == nil {
		return ""
	}
	for _, p := range c.Snapshot().Partitions {
		if p.Line.State != workers.StateRunning {
			return p.Field + " " + terminal.Plain(p.Line.State) + ": " + terminal.Plain(p.Line.What)
		}
	}
	return ""
}

// idEnd is the offset at which the id of a sample event ends, including its quote.
const idEnd = len(`{"event_id":"`) + 32 + len(`"`)

// appendRun turns a valid event into a run in the arena, with the same id and member and the record's time.
// There are few stages, so that revives often decide.
func appendRun(buf []byte, luck *rand.Rand, e *sample.Event) []byte {
	stage := min(mostStage, 1+int(luck.ExpFloat64()*6))
	revives := min(mostRevives, int(luck.ExpFloat64()*3))
	buf = append(append(buf, e.Value[:idEnd]...), `,"board":"`+arena+`","user_id":"`...)
	buf = append(append(buf, e.Key...), `","stage":`...)
	buf = append(strconv.AppendInt(buf, int64(stage), 10), `,"revives":`...)
	return append(strconv.AppendInt(buf, int64(revives), 10), '}')
}
