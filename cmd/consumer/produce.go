package main

// consumer produce: its command line. producing.go does the work.

import (
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/internal/sample"
)

// produceFlags are the command line of consumer produce.
type produceFlags struct {
	brokers     []string
	topic       string
	createTopic int
	compression string
	format      string
	run         string // the name of this run

	rate     float64
	count    int64
	duration time.Duration

	sample sample.Options
	spread time.Duration
	seed   uint64
	now    string

	amongReal bool

	file  string
	raw   bool
	check bool
}

const (
	// defaultRate keeps a bare `consumer produce` from flooding a cluster.
	defaultRate = 1000
	// maxRate is far more than can be published, and little enough to be counted.
	maxRate = 1_000_000_000
)

func newProduceCommand(p *cli.Program) *cobra.Command {
	f := &produceFlags{}
	var asJSON bool
	c := &cobra.Command{
		Use:   "produce",
		Short: "Publish sample events, or the lines of a file",
		Long: `Publishes events, acknowledged by all in-sync replicas: made up by default, or the
lines of a file with --file. Brokers and topic are those of the configuration.

Made-up events go back in time by occurred_at alone (--spread): a record's own
time is always now, as Kafka would delete older ones. A consumer that is to count
them needs a lateness of at least the spread. The same seed and options, with
--now, make the same events.

Made-up events count like all others. So none are made up for a topic whose last
records are others' (or can't be read), unless --among-real-events says so.

Lines that "consumer dead-letters export" wrote are published with their own key,
headers and time, and with the header standings-mends, which says where the original
stands. See docs/operations.md on what counts twice.

--check publishes nothing and asks nobody. By the consumer's own decoder and the settings
here it shows for each line the windows that would count it, or the reason and message of
the dead letter that it would be; then the exit code is 1. What only the standings can say
is left open: max_points of a standing, and max_windows.

An attempt that fails without an answer is made again, so that an event may be
there twice; how many is told.`,
		Example: `  consumer produce --rate 500 --boards eu,us
  consumer produce --count 1000000 --members 100000 --spread 35d --bad 0.01
  consumer produce --file events.ndjson
  consumer produce --rate 10 --format cloudevents
  some-program | consumer produce --file -
  consumer produce --file fixed.ndjson --check
  consumer produce --file fixed.ndjson`,
		Args: cli.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := p.Configuration()
			if err != nil {
				return err
			}
			if err := f.complete(c, l.Config); err != nil {
				return err
			}
			if f.check {
				return checkLines(c.Context(), p, f, l.Config, asJSON)
			}
			return publish(c.Context(), p, f, l.Config)
		},
	}
	f.declare(c)
	c.Flags().BoolVar(&asJSON, "json", false, "with --check: write JSON")
	return c
}

func (f *produceFlags) declare(c *cobra.Command) {
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringSliceVar(&f.brokers, "brokers", nil, "brokers as `host:port,…` (default: kafka.brokers)")
	flags.StringVar(&f.topic, "topic", "", "the `topic` to publish to (default: kafka.topics)")
	flags.IntVar(&f.createTopic, "create-topic", 0, "create the topic with this many `partitions` if it is missing")
	flags.StringVar(&f.compression, "compression", "lz4", "none, snappy, lz4, zstd or gzip")
	flags.StringVar(&f.format, "format", formatPlain, "plain, cloudevents (binary mode) or cloudevents-structured")
	flags.Float64Var(&f.rate, "rate", 0, "events a second; 0 is as fast as it goes (default: 1000, or 0 with --count or --file)")
	flags.Int64Var(&f.count, "count", 0, "stop after this many events (default: never)")
	flags.Var(cli.Duration(&f.duration), "duration", "stop after this `time`, such as 30s")
	flags.IntVar(&f.sample.Members, "members", 1000, "how many members there are")
	flags.Float64Var(&f.sample.Skew, "skew", 1.1, "how uneven they are: Zipf's exponent, 0 for all alike")
	flags.StringSliceVar(&f.sample.Boards, "boards", nil, "the `boards` to choose from (default: boards of the configuration, else global)")
	flags.IntVar(&f.sample.BoardsPerEvent, "boards-per-event", 1, "at most this many boards an event, 1 to 8")
	flags.Var(cli.Duration(&f.spread), "spread", "how far back occurred_at goes, evenly, such as `35d`")
	flags.BoolVar(&f.sample.NoOccurredAt, "no-occurred-at", false, "leave occurred_at out: the record's time counts")
	flags.Int64Var(&f.sample.PointsMax, "points", 100, "points of an event are 1 to this")
	flags.Float64Var(&f.sample.Bad, "bad", 0, "`share` of bad events, 0 to 1")
	flags.Float64Var(&f.sample.Corrections, "corrections", 0, "`share` of events that take points away, 0 to 1")
	flags.Uint64Var(&f.seed, "seed", 1, "makes the events repeatable")
	flags.StringVar(&f.now, "now", "", "the events' present, as RFC 3339 `time` (default: the clock)")
	flags.BoolVar(&f.amongReal, amongReal, false, "make events up for a topic that has somebody's, too")
	flags.StringVar(&f.file, "file", "", "publish the lines of this NDJSON `file`, - for standard input: events, with user_id as the key, or dead letters as they were exported and mended")
	flags.BoolVar(&f.raw, "raw", false, "with --file: publish lines that aren't JSON objects too")
	flags.BoolVar(&f.check, "check", false, "with --file: publish nothing, and show what would become of each line")
}

// complete takes from the configuration what the command line leaves open, and
// refuses what makes no sense.
func (f *produceFlags) complete(c *cobra.Command, cfg *config.Config) error {
	if len(f.brokers) == 0 {
		f.brokers = cfg.Kafka.Brokers
	}
	for _, b := range f.brokers {
		if err := config.CheckAddress(b); err != nil {
			return cli.Usagef("--brokers %s %w", config.HarmlessAddress(strings.Join(f.brokers, ",")), err)
		}
	}
	if f.topic == "" && len(cfg.Kafka.Topics) > 1 {
		return cli.Usagef("say which --topic: the configuration has %s", strings.Join(cfg.Kafka.Topics, ", "))
	}
	if f.topic == "" {
		f.topic = cfg.Kafka.Topics[0]
	}
	if err := config.CheckTopic(f.topic); err != nil {
		return cli.Usagef("--topic %s %w", f.topic, err)
	}
	if len(f.sample.Boards) == 0 {
		f.sample.Boards = cfg.Boards
	}
	if !slices.Contains(compressions, f.compression) {
		return cli.Usagef("--compression %s isn't one of %s", f.compression, strings.Join(compressions, ", "))
	}
	if !slices.Contains(formats, f.format) {
		return cli.Usagef("--format %s isn't one of %s", f.format, strings.Join(formats, ", "))
	}
	f.run = rand.Text()
	if f.rate < 0 || f.count < 0 || f.createTopic < 0 {
		return cli.Usagef("--rate, --count and --create-topic can't be negative")
	}
	if !(f.rate <= maxRate) { // NaN too
		return cli.Usagef("--rate has to be 0 to %d", maxRate)
	}
	if !c.Flags().Changed("rate") && f.count == 0 && f.file == "" {
		f.rate = defaultRate
	}
	for name, given := range map[string]bool{"raw": f.raw, "check": f.check} {
		if given && f.file == "" {
			return cli.Usagef("--%s is for --file", name)
		}
	}
	if !f.check && c.Flags().Changed("json") {
		return cli.Usagef("--json is for --check")
	}
	f.sample.Seed, f.sample.Spread, f.sample.PointsMin = f.seed, f.spread, 1
	f.sample.Now = time.Now()
	if f.now != "" {
		now, err := time.Parse(time.RFC3339, f.now)
		if err != nil {
			return cli.Usagef("--now %s isn't a time such as 2026-11-21T08:15:30Z", f.now)
		}
		f.sample.Now = now
	}
	return nil
}

var compressions = []string{"none", "snappy", "lz4", "zstd", "gzip"}

func (f *produceFlags) codec() kafka.Compression {
	// In the order of kafka's numbers: none, gzip, snappy, lz4, zstd.
	return map[string]kafka.Compression{"gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd}[f.compression]
}
