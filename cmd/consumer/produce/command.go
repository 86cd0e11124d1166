// Package produce implements the command produce: it publishes sample events, or the lines of a file.
package produce

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/config"
)

// Command returns the produce command for a program.
func Command(p *cli.Program) *cobra.Command {
	f := &flags{}
	c := &cobra.Command{
		Use:   "produce",
		Short: "Publish events from a file, or sample events",
		Long: `Publishes events with acknowledgement by all in-sync replicas: the lines of --file, or
sample events with --count or --rate. Brokers, topic and boards come from the
configuration.

Sample events count like all others: use a topic of its own, unless the boards are for testing
only. --spread distributes their occurred_at over the past; record times are always now, since Kafka
would delete older records. The consumer needs a lateness of at least the spread.

Lines written by "consumer dead-letters export" are published with their key, headers and
time, and with the header standings-mends, which names the source record.
docs/dead-letters.md describes what would count twice.

--check publishes nothing and connects to nothing. It shows, for the consumer's decoder and these
settings, the windows that would count each line, or the reason and message of the dead
letter. The exit code is then 1 if a line would be a dead letter. It cannot check limits that
depend on standings: max_points of a standing and max_windows.

Unacknowledged records are sent again, without duplicates: the producer is idempotent. A run that
is interrupted, or that gets no reply for a minute, reports how many events may have been
written.`,
		Example: `  consumer produce --file events.ndjson
  some-program | consumer produce --file -
  consumer produce --file fixed.ndjson --check
  consumer produce --rate 500
  consumer produce --count 1000000 --members 100000 --spread 35d`,
		Args: cli.ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := p.Configuration()
			if err != nil {
				return err
			}
			if err := f.complete(l.Config); err != nil {
				return err
			}
			if f.check {
				return checkLines(c.Context(), p, f, l.Config)
			}
			return publish(c.Context(), p, f, l.Config)
		},
	}
	f.declare(c)
	return c
}

// flags holds the command line of consumer produce.
type flags struct {
	topic       string
	createTopic int

	rate     float64 // events per second; 0: no limit
	count    int64
	duration time.Duration
	members  int
	spread   time.Duration

	file   string
	check  bool
	asJSON bool
}

// maxRate is far above any possible rate, and small enough for arithmetic without overflow.
const maxRate = 1_000_000_000

func (f *flags) declare(c *cobra.Command) {
	set := c.Flags()
	set.SortFlags = false
	set.StringVar(&f.topic, "topic", "", "the `topic` to publish to (default: kafka.topics)")
	set.IntVar(&f.createTopic, "create-topic", 0, "create the topic with this many `partitions` if it is missing")
	set.Int64Var(&f.count, "count", 0, "stop after this many `events` (default: never)")
	set.Float64Var(&f.rate, "rate", 0, "`events` a second (default: as many as Kafka takes)")
	set.Var(cli.Duration(&f.duration), "duration", "stop after this `time`, such as 30s")
	set.IntVar(&f.members, "members", 1000, "number of `members`; a few have most events (Zipf 1.1)")
	set.Var(cli.Duration(&f.spread), "spread", "distribute occurred_at evenly over this past `time`, such as 35d")
	set.StringVar(&f.file, "file", "", "publish the lines of this NDJSON `file`, - for standard input: events, with user_id as the key, or dead letters as they were exported and fixed")
	set.BoolVar(&f.check, "check", false, "with --file: publish nothing, and show the result of each line")
	set.BoolVar(&f.asJSON, "json", false, "with --check: write JSON")
}

// complete fills in defaults from the configuration, and rejects flags that contradict each other.
func (f *flags) complete(cfg *config.Config) error {
	if f.topic == "" && len(cfg.Kafka.Topics) > 1 {
		return cli.Usagef("give --topic: the configuration has several topics")
	}
	if f.topic == "" {
		f.topic = cfg.Kafka.Topics[0]
	}
	if err := config.CheckTopic(f.topic); err != nil {
		return cli.Usagef("--topic %s %w", f.topic, err)
	}
	switch {
	case f.rate < 0 || f.count < 0 || f.createTopic < 0:
		return cli.Usagef("--rate, --count and --create-topic must not be negative")
	case !(f.rate <= maxRate): // also rejects NaN
		return cli.Usagef("--rate must be 0 to %d", maxRate)
	case f.check && f.file == "":
		return cli.Usagef("--check is for --file")
	case f.asJSON && !f.check:
		return cli.Usagef("--json is for --check")
	case f.file == "" && f.rate == 0 && f.count == 0:
		return cli.Usagef("give --file for the lines of a file, or --count or --rate for made-up events")
	}
	return nil
}
