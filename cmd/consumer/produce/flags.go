package produce

// The flags, and what they come to with the configuration.

import (
	"crypto/rand"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/internal/sample"
)

// flags are the command line of consumer produce.
type flags struct {
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

// amongReal is the flag by which events are made up beside others.
const amongReal = "among-real-events"

const (
	// defaultRate keeps a bare `consumer produce` from flooding a cluster.
	defaultRate = 1000
	// maxRate is far more than can be published, and little enough to be counted.
	maxRate = 1_000_000_000
)

func (f *flags) declare(c *cobra.Command) {
	set := c.Flags()
	set.SortFlags = false
	set.StringSliceVar(&f.brokers, "brokers", nil, "brokers as `host:port,…` (default: kafka.brokers)")
	set.StringVar(&f.topic, "topic", "", "the `topic` to publish to (default: kafka.topics)")
	set.IntVar(&f.createTopic, "create-topic", 0, "create the topic with this many `partitions` if it is missing")
	set.StringVar(&f.compression, "compression", "lz4", "none, snappy, lz4, zstd or gzip")
	set.StringVar(&f.format, "format", formatPlain, "plain, cloudevents (binary mode) or cloudevents-structured")
	set.Float64Var(&f.rate, "rate", 0, "events a second; 0 is as fast as it goes (default: 1000, or 0 with --count or --file)")
	set.Int64Var(&f.count, "count", 0, "stop after this many events (default: never)")
	set.Var(cli.Duration(&f.duration), "duration", "stop after this `time`, such as 30s")
	set.IntVar(&f.sample.Members, "members", 1000, "how many members there are")
	set.Float64Var(&f.sample.Skew, "skew", 1.1, "how uneven they are: Zipf's exponent, 0 for all alike")
	set.StringSliceVar(&f.sample.Boards, "boards", nil, "the `boards` to choose from (default: boards of the configuration, else global)")
	set.IntVar(&f.sample.BoardsPerEvent, "boards-per-event", 1, "at most this many boards an event, 1 to 8")
	set.Var(cli.Duration(&f.spread), "spread", "how far back occurred_at goes, evenly, such as `35d`")
	set.BoolVar(&f.sample.NoOccurredAt, "no-occurred-at", false, "leave occurred_at out: the record's time counts")
	set.Int64Var(&f.sample.PointsMax, "points", 100, "points of an event are 1 to this")
	set.Float64Var(&f.sample.Bad, "bad", 0, "`share` of bad events, 0 to 1")
	set.Float64Var(&f.sample.Corrections, "corrections", 0, "`share` of events that take points away, 0 to 1")
	set.Uint64Var(&f.seed, "seed", 1, "makes the events repeatable")
	set.StringVar(&f.now, "now", "", "the events' present, as RFC 3339 `time` (default: the clock)")
	set.BoolVar(&f.amongReal, amongReal, false, "make events up for a topic that has somebody's, too")
	set.StringVar(&f.file, "file", "", "publish the lines of this NDJSON `file`, - for standard input: events, with user_id as the key, or dead letters as they were exported and fixed")
	set.BoolVar(&f.raw, "raw", false, "with --file: publish lines that aren't JSON objects too")
	set.BoolVar(&f.check, "check", false, "with --file: publish nothing, and show what would become of each line")
}

// complete takes from the configuration what the command line leaves open, and
// refuses what makes no sense.
func (f *flags) complete(c *cobra.Command, cfg *config.Config) error {
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
	if _, ok := compressions[f.compression]; !ok {
		return cli.Usagef("--compression %s isn't one of %s", f.compression, strings.Join(slices.Sorted(maps.Keys(compressions)), ", "))
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

var compressions = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(),
	"zstd": kgo.ZstdCompression(), "gzip": kgo.GzipCompression(),
}
