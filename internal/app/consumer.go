// Package app builds the parts that use Kafka and Redis from the configuration, and explains their errors in
// one line for the operator.
package app

// The configured consumer.

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/locate"
	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/ingest/rulebook"
	"github.com/standings/standings/internal/ingest/shards"
	"github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/ranking/shadow"
	"github.com/standings/standings/internal/zoneinfo"
)

// NewConsumer returns the consumer, which pauses while pause says so. It does not run yet.
func NewConsumer(cfg *config.Config, settings kafkaconn.Settings, transport *kafkaconn.Transport, all *boards.Boards, pause *ingest.Pause, before BeforeCounting, log *zap.Logger, stats *counts.Stats) (*ingest.Consumer, error) {
	var standings []shards.Standings
	for _, s := range all.Shards() {
		standings = append(standings, consumedStandings{redisStandings{s}, before})
	}
	c, err := consumerConfig(cfg, settings, transport, standings, log, stats)
	if err != nil {
		return nil, err
	}
	c.Pause = pause
	return ingest.New(c), nil
}

// NewReplay returns a reader that reads the log like the consumer and writes to a rebuild's shadows, one per
// shard.
func NewReplay(cfg *config.Config, settings kafkaconn.Settings, transport *kafkaconn.Transport, into []*shadow.Store, log *zap.Logger) (*replay.Replay, error) {
	var standings []shards.Standings
	for _, s := range into {
		standings = append(standings, s)
	}
	c, err := consumerConfig(cfg, settings, transport, standings, log, new(counts.Stats))
	if err != nil {
		return nil, err
	}
	return ingest.NewReplay(c), nil
}

const (
	// fetchWait is how long a broker may hold a fetch without records. The broker answers at once when a record
	// arrives, so a longer wait would only reduce the requests of an idle partition.
	fetchWait = 500 * time.Millisecond
	// heartbeat is how often a replica sends a heartbeat to its group: at least three times within the shortest
	// kafka.session_timeout, and often enough that a rebalance starts within a second.
	heartbeat = time.Second
	// commitInterval is how often offsets are committed. Lag monitors read them. A worker starts from the
	// ledger, so a later commit costs nothing.
	commitInterval = time.Second
	// pieceTime is how long one call may keep Redis busy, and so how long other clients may have to wait.
	// Shorter calls cost Redis more per event (docs/performance.md).
	pieceTime = 5 * time.Millisecond
)

func consumerConfig(cfg *config.Config, settings kafkaconn.Settings, transport *kafkaconn.Transport, standings []shards.Standings, log *zap.Logger, stats *counts.Stats) (ingest.Config, error) {
	where, err := parseStart(cfg.Start)
	if err != nil {
		return ingest.Config{}, err
	}
	onGap := start.GapHalts
	if cfg.OnGap == "continue" {
		onGap = start.GapContinues
	}
	kept := cfg.Retentions()
	set, err := RuleSet(cfg)
	if err != nil {
		return ingest.Config{}, err
	}
	text := set.Text()
	read := func(text string) (rulebook.Counting, error) { return Counting(text, cfg) }
	counting, err := read(text)
	if err != nil {
		return ingest.Config{}, err
	}
	client := &kafka.Client{Addr: kafka.TCP(cfg.Kafka.Brokers...), Transport: kafkaconn.Robust(transport), Timeout: cfg.Kafka.Timeout}
	return ingest.Config{
		Kafka: ingest.Kafka{
			Brokers: cfg.Kafka.Brokers, Transport: transport,
			Dialer: settings.Dialer(transport), GroupBrokers: []string{kafkaconn.AnyBroker},
			Refusal: func(ctx context.Context) error { return settings.Diagnose(ctx, cfg.Kafka.Brokers...) },
			Topics:  cfg.Kafka.Topics, Group: cfg.Kafka.Group,
			FetchBytes: int(cfg.Kafka.FetchBytes),
		},
		Timing: ingest.Timing{
			FetchWait:      fetchWait,
			SessionTimeout: cfg.Kafka.SessionTimeout, Heartbeat: heartbeat, Timeout: cfg.Kafka.Timeout,
			CommitInterval: commitInterval, ShutdownTime: cfg.ShutdownTimeout,
			PieceTime: pieceTime,
		},
		Starting: ingest.Starting{Start: where, OnGap: onGap, Traces: traces(cfg, client), Disorder: cfg.Disorder},
		Counting: ingest.Counting{
			Rules: counting.Windows, Retention: kept,
			Events: counting.Events, Duplicates: counting.Duplicates, RulesText: text, ReadRules: read,
		},
		Owner: Owner(), TimeZoneData: zoneinfo.Current().Version,
		FoldMemory: cfg.FoldMemory,
		Standings:  standings, Log: log, Stats: stats,
	}, nil
}

// redisStandings is a shard's store with the classification of errors that ingest needs.
type redisStandings struct{ *ranking.Store }

// Classify returns what to do about an error of Redis.
func (redisStandings) Classify(err error) ledger.Verdict { return ranking.Classify(err) }

func parseStart(text string) (start.Where, error) {
	switch text {
	case "window":
		return start.Where{From: start.FromWindow}, nil
	case "earliest":
		return start.Where{From: start.FromEarliest}, nil
	case "latest":
		return start.Where{From: start.FromLatest}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return start.Where{}, fmt.Errorf("start: %w", err)
	}
	return start.Where{From: start.FromTime, Time: at}, nil
}

// Owner returns a name of this process for other processes, in status and as the owner of a rebuild.
func Owner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}

// NewTransport returns the consumer's transport to Kafka. It knows the source topics, their dead-letter topics,
// and other topics that are read.
func NewTransport(cfg *config.Config, settings kafkaconn.Settings, others ...string) *kafkaconn.Transport {
	topics := slices.Concat(others, cfg.Kafka.Read())
	for _, t := range cfg.Kafka.Topics {
		topics = append(topics, event.DeadLetterTopic(t))
	}
	if cfg.Kafka.FinalTopic != "" {
		topics = append(topics, cfg.Kafka.FinalTopic, cfg.Kafka.PublishedTopic())
	}
	return settings.Transport(time.Second, topics...) // a moved leader is noticed this soon
}

// BeforeCounting has what a worker does between reading where it continues and applying anything. A worker reads that at
// the start of a generation and whenever the ledger has moved.
type BeforeCounting struct {
	// Begin records the number of shards, if a shard is empty and the worker may begin it.
	Begin func(context.Context) error
	// Align brings the standings in line with the bans topic; nil if nobody can be banned. The order matters:
	//
	//	the worker                           Redis
	//	reads the ledger: 120
	//	                                     goes back: to 100, without a ban
	//	hides the banned member again
	//	applies from 120: the ledger moved
	//
	// In the other order the worker would read 100 after it had hidden the member, and count for a member who is shown.
	Align func(context.Context) error
}

// consumedStandings are the standings of one shard for a consumer.
type consumedStandings struct {
	shards.Standings

	before BeforeCounting
}

// State returns the whole ledger and what is stored next to it.
func (s consumedStandings) State(ctx context.Context) (ledger.State, error) {
	state, err := s.Standings.State(ctx)
	if err == nil && state.Schema == "" && s.before.Begin != nil {
		err = s.before.Begin(ctx)
	}
	if err == nil && s.before.Align != nil {
		err = s.before.Align(ctx)
	}
	if err != nil {
		return ledger.State{}, err
	}
	return state, nil
}

// ReadTopic is a topic that a consumer reads.
type ReadTopic struct {
	Name       string
	Partitions int
	Committed  map[int]kafkaconn.Commit
}

// ReadTopics returns the configured topics, with the offsets that the configured group has committed.
func ReadTopics(ctx context.Context, cfg *config.Config, client *kafka.Client) (all []ReadTopic, err error) {
	m, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: cfg.Kafka.Topics})
	if err != nil {
		return nil, fmt.Errorf("ask Kafka for its topics: %w", err)
	}
	for _, t := range m.Topics {
		if t.Error != nil {
			return nil, fmt.Errorf("ask Kafka for the topic %s: %w", t.Name, t.Error)
		}
		committed, err := kafkaconn.Committed(ctx, client, cfg.Kafka.Group, t.Name, kafkaconn.UpTo(len(t.Partitions))...)
		if err != nil {
			return nil, fmt.Errorf("read the offsets of group %s for %s: %w", cfg.Kafka.Group, t.Name, err)
		}
		all = append(all, ReadTopic{t.Name, len(t.Partitions), committed})
	}
	return all, nil
}

// Reach returns how far back the logs of some topics reach, for the partition with the shortest reach. The
// consumer need not run. clock is Redis's clock.
func Reach(ctx context.Context, c *ingest.Consumer, topics []ReadTopic, clock func() time.Time) (least locate.Reach, err error) {
	for _, t := range topics {
		r, err := c.Reach(ctx, t.Name, t.Partitions, t.Committed, clock)
		if err != nil {
			return locate.Reach{}, err
		}
		least = least.Least(r)
	}
	return least, nil
}
