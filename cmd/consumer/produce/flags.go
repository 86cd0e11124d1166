package produce

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/config"
)

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
