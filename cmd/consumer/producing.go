package main

// consumer produce at work: from a source to a topic, at a rate, with a report.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/clients"
	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/cmd/consumer/terminal"
	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/sample"
)

// open is the source of what is published, and a function that closes it.
func openSource(ctx context.Context, p *cli.Program, f *produceFlags) (source, func(), error) {
	switch f.file {
	case "":
		generator, err := sample.New(f.sample)
		if err != nil {
			return nil, nil, cli.Usagef("%w", err)
		}
		return &samples{generator: generator, fixed: f.now != "", bad: make(map[string]int64)}, func() {}, nil
	case "-":
		return newLines(interruptible(ctx, p.Stdin), f.topic, f.raw), func() {}, nil
	}
	file, err := os.Open(f.file)
	if err != nil {
		return nil, nil, cli.Usagef("--file: %w", err)
	}
	return newLines(file, f.topic, f.raw), func() { _ = file.Close() }, nil
}

func publish(ctx context.Context, p *cli.Program, f *produceFlags, cfg *config.Config) error {
	feeding, enough := context.WithCancel(ctx)
	defer enough()
	src, closeSource, err := openSource(feeding, p, f)
	if err != nil {
		return err
	}
	defer closeSource()
	there := cfg.Kafka
	there.Brokers = f.brokers
	client, err := clients.NewKafka(&there, f.topic)
	if err != nil {
		return err
	}
	defer clients.CloseKafka(client)
	partitions, err := findTopic(ctx, client, &there, f)
	if ctx.Err() != nil {
		return errors.New("interrupted before anything was published")
	}
	if err != nil {
		return err
	}
	if f.file == "" && !f.amongReal {
		if err := checkOthers(ctx, client, &there, f.topic, partitions); err != nil {
			return err
		}
	}
	if f.file == "" && f.spread > cfg.Lateness {
		fmt.Fprintf(p.Stderr, "note: events go back %s; a consumer with a lateness of %s counts some as late\n",
			units.FormatDuration(f.spread), units.FormatDuration(cfg.Lateness))
	}
	if f.file == "" && cfg.Fields != config.Defaults().Fields {
		fmt.Fprintln(p.Stderr, "note: sample events have fields by their own names; a consumer with this event.fields looks for them elsewhere")
	}

	// What is under way may end in order after ctx, for as long as a shutdown may
	// take.
	sending, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(cfg.ShutdownTimeout, abandon) })()

	pub := &publisher{client: client, topic: f.topic, compression: f.codec(), headers: headers(f.format, f.source()), patience: publishPatience}
	shown := terminal.ShowProgress(p.Stderr, "publishing to "+f.topic, "events", f.count, pub.events.Load)
	pub.say = func(line string) { shown.Note("consumer: " + line) }
	begun := time.Now()
	if f.duration > 0 {
		defer time.AfterFunc(f.duration, enough).Stop()
	}
	pub.start(sending, partitions)
	fed := f.feed(feeding, src, pub)
	sent := pub.close()
	took := time.Since(begun)
	shown.Stop()
	summarize(p, pub, src, f.topic, took, ctx.Err() != nil)
	switch {
	case sent != nil:
		return clients.ExplainKafka(ctx, sent, &there, f.topic)
	case errors.Is(fed, io.EOF), errors.Is(fed, context.Canceled):
		return nil // an end that was asked for
	}
	return fed
}

// findTopic is the number of the topic's partitions; it creates the topic if the
// flags say so. One that this user can't write is an error.
func findTopic(ctx context.Context, client *kafka.Client, there *config.Kafka, f *produceFlags) (int, error) {
	n, err := clients.TopicPartitions(ctx, client, f.topic)
	if errors.Is(err, clients.ErrNoTopic) && f.createTopic > 0 {
		if err = clients.CreateTopic(ctx, client, f.topic, f.createTopic); err == nil {
			n, err = clients.TopicPartitions(ctx, client, f.topic)
		}
	}
	if err == nil {
		if way, problem := there.Connection(); problem != nil {
			err = problem
		} else {
			err = way.Diagnose(ctx, there.Brokers...) // the addresses that the cluster advertises, too
		}
	}
	if err == nil {
		write := ingest.Right{Operation: kafka.ACLOperationTypeWrite, Topic: f.topic, For: "to publish events"}
		var missing []ingest.Right
		if missing, err = ingest.Missing(ctx, client, []ingest.Right{write}); err == nil {
			err = ingest.Required(missing)
		}
	}
	if err == nil {
		return n, nil
	}
	explained := clients.ExplainKafka(ctx, err, there, f.topic)
	if errors.Is(err, clients.ErrNoTopic) {
		return 0, fmt.Errorf("%w; --create-topic PARTITIONS creates it", explained)
	}
	return 0, explained
}

// feed hands records to the publisher until the count is reached. Its error is
// io.EOF at the source's end, and ctx's at that one's.
func (f *produceFlags) feed(ctx context.Context, src source, pub *publisher) error {
	pace := pacer{rate: f.rate, begun: time.Now()}
	form := envelope{format: f.format, source: f.source()}
	now := pace.begun
	for made := int64(0); f.count == 0 || made < f.count; made++ {
		if made%256 == 0 || f.rate > 0 {
			if now = pace.wait(ctx, made); f.now != "" {
				now = f.sample.Now
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			src.setNow(now)
		}
		o, err := src.next()
		if err != nil {
			return err
		}
		if o.letter && f.format != formatPlain {
			return errFormatOfLetters(f.format)
		}
		if err := pub.add(ctx, form.wrap(o, now)); err != nil {
			return err
		}
	}
	return nil
}

func errFormatOfLetters(format string) error {
	return fmt.Errorf("--format %s is for events, and the file has dead letters, with headers of their own", format)
}

// eventSource begins the source of every CloudEvent that is published.
const eventSource = "/consumer/produce/"

// source is that of CloudEvents. Made-up events of a given present are the
// same ones whenever they are made; all others are new ones.
func (f *produceFlags) source() string {
	if f.file == "" && f.now != "" {
		return fmt.Sprintf("%sseed/%d", eventSource, f.seed)
	}
	return eventSource + f.run
}

// pacer keeps events at a rate, in steps of a few milliseconds: a timer an event
// would cost more than the event.
type pacer struct {
	rate  float64
	begun time.Time
	now   time.Time
	due   int64 // events that may have been made by now
}

const paceStep = 5 * time.Millisecond

// wait returns once the event after made others is due, with the time.
func (p *pacer) wait(ctx context.Context, made int64) time.Time {
	if p.rate <= 0 {
		return time.Now()
	}
	for made >= p.due && ctx.Err() == nil {
		next := p.begun.Add(time.Duration(float64(made) / p.rate * float64(time.Second)))
		select {
		case <-ctx.Done():
		case <-time.After(max(time.Until(next), paceStep)):
		}
		p.now = time.Now()
		p.due = int64(p.now.Sub(p.begun).Seconds()*p.rate) + 1
	}
	return p.now
}

// summarize says on stdout what was acknowledged.
func summarize(p *cli.Program, pub *publisher, src source, topic string, took time.Duration, interrupted bool) {
	events, bytes := pub.events.Load(), pub.bytes.Load()
	end := ""
	if interrupted {
		end = " (interrupted)"
	}
	volume := fmt.Sprintf("%.1f MiB", float64(bytes)/units.MiB)
	if bytes < units.MiB {
		volume = fmt.Sprintf("%.1f KiB", float64(bytes)/units.KiB)
	}
	fmt.Fprintf(p.Stdout, "published %s events to %s in %s: %s/s, %s, acknowledged by all replicas%s\n",
		units.Thousands(events), topic, took.Round(time.Millisecond), units.Thousands(int64(float64(events)/took.Seconds())), volume, end)
	if n := pub.resends.Load(); n > 0 {
		fmt.Fprintf(p.Stdout, "up to %s of them may be there twice: they were sent again for want of an answer\n", units.Thousands(n))
	}
	made, ok := src.(*samples)
	if !ok || len(made.bad) == 0 {
		return
	}
	var parts []string
	for _, reason := range []string{sample.Malformed, sample.Invalid, sample.UnknownBoard, sample.BadTime} {
		parts = append(parts, fmt.Sprintf("%s %s", units.Thousands(made.bad[reason]), reason))
	}
	fmt.Fprintf(p.Stdout, "bad ones made: %s\n", strings.Join(parts, ", "))
}
