package produce

// The command at work: from a source to a topic, at a rate, with a report.

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
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/sample"
)

// open is the source of what is published, and a function that closes it.
func openSource(ctx context.Context, p *cli.Program, f *flags) (source, func(), error) {
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

var errNothingYet = errors.New("interrupted before anything was published")

func publish(ctx context.Context, p *cli.Program, f *flags, cfg *config.Config) error {
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
		return errNothingYet
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

	pub := &Publisher{kafka: &there, topic: f.topic, compression: compressions[f.compression], anySize: f.file != "",
		patience: max(publishPatience, 4*there.Timeout)}
	pub.limit, _ = clients.MaxMessageBytes(ctx, client, f.topic)
	if err := pub.open(ctx, partitions); err != nil {
		if ctx.Err() != nil {
			return errNothingYet
		}
		return clients.ExplainPublishing(ctx, err, &there, f.topic)
	}
	shown := terminal.ShowProgress(p.Stderr, "publishing to "+f.topic, "events", f.count, pub.events.Load)
	pub.begin(func(line string) { shown.Note("consumer: " + line) })
	begun := time.Now()
	if f.duration > 0 {
		defer time.AfterFunc(f.duration, enough).Stop()
	}
	fed := f.feed(feeding, src, pub)
	sent := pub.close(sending)
	took := time.Since(begun)
	shown.Stop()
	summarize(p, pub, src, f.topic, took, ctx.Err() != nil)
	switch {
	case sent != nil:
		return clients.ExplainPublishing(ctx, sent, &there, f.topic)
	case errors.Is(fed, io.EOF), errors.Is(fed, context.Canceled):
		return nil // an end that was asked for
	}
	return fed
}

// findTopic is the number of the topic's partitions; it creates the topic if the
// flags say so. One that this user can't write is an error.
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
			err = settings.Diagnose(ctx, there.Brokers...) // the addresses that the cluster advertises, too
		}
	}
	if err == nil {
		write := kafkaconn.Right{Operation: kafka.ACLOperationTypeWrite, Topic: f.topic, For: "to publish events"}
		err = kafkaconn.CheckRights(ctx, client, write)
	}
	if err == nil {
		return n, nil
	}
	explained := clients.ExplainKafka(ctx, err, there, f.topic)
	if errors.Is(err, kafkaconn.ErrNoTopic) {
		return 0, fmt.Errorf("%w; --create-topic PARTITIONS creates it", explained)
	}
	return 0, explained
}

// feed hands records to the Publisher until the count is reached. Its error is
// io.EOF at the source's end, and ctx's at that one's.
func (f *flags) feed(ctx context.Context, src source, pub *Publisher) error {
	pace := NewPacer(f.rate)
	form := newEnvelope(f.format, f.source())
	now := pace.begun
	for made := int64(0); f.count == 0 || made < f.count; made++ {
		if made%256 == 0 || f.rate > 0 {
			if now = pace.Wait(ctx, made); f.now != "" {
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
		if o.isCopy && f.format != formatPlain {
			return errDeadLettersFormat(f.format)
		}
		if err := pub.add(ctx, form.wrap(o, now)); err != nil {
			return err
		}
	}
	return nil
}

func errDeadLettersFormat(format string) error {
	return fmt.Errorf("--format %s is for events, and the file has dead letters, with headers of their own", format)
}

// eventSource begins the source of every CloudEvent that is published.
const eventSource = "/consumer/produce/"

// source is that of CloudEvents. Made-up events of a given present are the
// same ones whenever they are made; all others are new ones.
func (f *flags) source() string {
	if f.file == "" && f.now != "" {
		return fmt.Sprintf("%sseed/%d", eventSource, f.seed)
	}
	return eventSource + f.run
}

// summarize says on stdout what was acknowledged.
func summarize(p *cli.Program, pub *Publisher, src source, topic string, took time.Duration, interrupted bool) {
	events, bytes := pub.events.Load(), pub.bytes.Load()
	end := ""
	if interrupted {
		end = " (interrupted)"
	}
	fmt.Fprintf(p.Stdout, "published %s to %s in %s: %s/s, %s, acknowledged by all replicas%s\n",
		units.Plural(events, "event"), topic, took.Round(time.Millisecond), units.Thousands(int64(float64(events)/took.Seconds())), units.ShortBytes(bytes), end)
	if n := pub.unsure(); n > 0 {
		fmt.Fprintf(p.Stdout, "%s more may be there or not: they were handed over, and nothing was heard of them\n", units.Thousands(n))
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
