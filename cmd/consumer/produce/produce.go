package produce

// This file publishes from a source to a topic, at a rate, and reports the result.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/sample"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
)

// openSource opens the lines of a file, or a generator of sample events.
func openSource(ctx context.Context, p *cli.Program, f *flags, cfg *config.Config) (source, func(), error) {
	if f.file != "" {
		src, closeSource, err := openLines(ctx, p, f)
		return src, closeSource, err
	}
	generator, err := sample.New(sample.Options{Seed: 1, Members: f.members, Skew: 1.1, Boards: cfg.Boards, Spread: f.spread, Now: time.Now()})
	if err != nil {
		return nil, nil, cli.Usagef("%w", err)
	}
	return &samples{generator: generator}, func() {}, nil
}

func openLines(ctx context.Context, p *cli.Program, f *flags) (*lines, func(), error) {
	if f.file == "-" {
		return newLines(interruptible(ctx, p.Stdin), f.topic), func() {}, nil
	}
	file, err := os.Open(f.file)
	if err != nil {
		return nil, nil, cli.Usagef("--file: %w", err)
	}
	return newLines(file, f.topic), func() { _ = file.Close() }, nil
}

var errNothingYet = errors.New("interrupted before anything was published")

func publish(ctx context.Context, p *cli.Program, f *flags, cfg *config.Config) error {
	feeding, enough := context.WithCancel(ctx)
	defer enough()
	src, closeSource, err := openSource(feeding, p, f, cfg)
	if err != nil {
		return err
	}
	defer closeSource()
	there := &cfg.Kafka
	client, err := app.NewKafka(there, f.topic)
	if err != nil {
		return err
	}
	defer app.CloseKafka(client)
	partitions, err := findTopic(ctx, client, there, f)
	if ctx.Err() != nil {
		return errNothingYet
	}
	if err != nil {
		return err
	}
	if f.file == "" && f.spread > cfg.Lateness {
		fmt.Fprintf(p.Stderr, "note: events go back %s; a consumer with a lateness of %s counts some as late\n",
			units.FormatDuration(f.spread), units.FormatDuration(cfg.Lateness))
	}

	// Requests in flight may finish after ctx has ended, for at most the shutdown timeout.
	sending, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(cfg.ShutdownTimeout, abandon) })()

	var shown atomic.Pointer[terminal.Progress]
	options := Options{Kafka: there, Topic: f.topic, Partitions: partitions, Patience: max(publishPatience, 4*there.Timeout)}
	options.Say = func(line string) {
		if progress := shown.Load(); progress != nil {
			progress.Note("consumer: " + line)
		}
	}
	options.Limit, _ = app.MaxMessageBytes(ctx, client, f.topic)
	pub, err := Open(ctx, options)
	if err != nil && ctx.Err() != nil {
		return errNothingYet
	}
	if err != nil {
		return err
	}
	progress := terminal.ShowProgress(p.Stderr, "publishing to "+f.topic, "events", f.count, pub.events.Load)
	shown.Store(progress)
	begun := time.Now()
	if f.duration > 0 {
		defer time.AfterFunc(f.duration, enough).Stop()
	}
	fed := f.feed(feeding, src, pub)
	sent := pub.Close(sending)
	took := time.Since(begun)
	progress.Stop()
	summarize(p, pub, took, ctx.Err() != nil)
	switch {
	case sent != nil:
		return sent
	case errors.Is(fed, io.EOF), errors.Is(fed, context.Canceled):
		return nil // a regular end
	}
	return fed
}

// findTopic returns the number of the topic's partitions. It creates the topic if the flags ask for it. A
// topic that this user cannot write to is an error.
func findTopic(ctx context.Context, client *kafka.Client, there *config.Kafka, f *flags) (int, error) {
	n, err := kafkaconn.TopicPartitions(ctx, client, f.topic)
	if errors.Is(err, kafkaconn.ErrNoTopic) && f.createTopic > 0 {
		if err = kafkaconn.CreateTopic(ctx, client, f.topic, f.createTopic); err == nil {
			n, err = kafkaconn.TopicPartitions(ctx, client, f.topic)
		}
	}
	if err == nil {
		if settings, problem := there.Connection(); problem != nil {
			err = problem
		} else {
			err = settings.Diagnose(ctx, there.Brokers...) // also checks the addresses that the cluster advertises
		}
	}
	if err == nil {
		write := kafkaconn.Right{Operation: kafka.ACLOperationTypeWrite, Topic: f.topic, For: "to publish events"}
		err = kafkaconn.CheckRights(ctx, client, write)
	}
	if err == nil {
		return n, nil
	}
	explained := app.ExplainKafka(ctx, err, there, f.topic)
	if errors.Is(err, kafkaconn.ErrNoTopic) {
		return 0, fmt.Errorf("%w; --create-topic PARTITIONS creates it", explained)
	}
	return 0, explained
}

// feed hands records to the Publisher until the count is reached. It returns io.EOF at the source's end,
// and ctx's error when ctx ends.
func (f *flags) feed(ctx context.Context, src source, pub *Publisher) error {
	pace := newPace(f.rate)
	defer pace.tick.Stop()
	for made := int64(0); f.count == 0 || made < f.count; made++ {
		if err := pace.wait(ctx, made); err != nil {
			return err
		}
		o, err := src.next()
		if err != nil {
			return err
		}
		if err := pub.add(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// pace limits the rate: it releases a few events at each tick. A timer per event would cost more than the
// event.
type pace struct {
	rate  float64 // events per second; 0: no limit
	begun time.Time
	tick  *time.Ticker
}

func newPace(rate float64) *pace {
	return &pace{rate: rate, begun: time.Now(), tick: time.NewTicker(5 * time.Millisecond)}
}

// wait returns when the next event is due, after made events.
func (p *pace) wait(ctx context.Context, made int64) error {
	for p.rate > 0 && float64(made) > p.rate*time.Since(p.begun).Seconds() && ctx.Err() == nil {
		select {
		case <-p.tick.C:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// summarize writes the counts of acknowledged and unsure events to stdout.
func summarize(p *cli.Program, pub *Publisher, took time.Duration, interrupted bool) {
	events, bytes := pub.events.Load(), pub.bytes.Load()
	end := ""
	if interrupted {
		end = " (interrupted)"
	}
	fmt.Fprintf(p.Stdout, "published %s to %s in %s: %s/s, %s, acknowledged by all replicas%s\n",
		units.Plural(events, "event"), pub.Topic, took.Round(time.Millisecond), units.Thousands(int64(float64(events)/took.Seconds())), units.ShortBytes(bytes), end)
	if n := pub.unsure(); n > 0 {
		fmt.Fprintf(p.Stdout, "%s more may have been written: they were not acknowledged\n", units.Thousands(n))
	}
}
