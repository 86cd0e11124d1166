package status

// This file queries Kafka and Redis for the status. If one of them is unavailable, the status shows the
// other.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"github.com/standings/standings/cmd/consumer/scan"
	"github.com/standings/standings/cmd/consumer/shards"
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/redisconn"
	"github.com/standings/standings/internal/units"
)

// gather queries Kafka and Redis concurrently. A server that cannot be reached is a problem in the report,
// not an error.
func gather(ctx context.Context, cfg *config.Config) (*report, error) {
	r, err := app.OpenReader(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	client, err := app.NewKafka(&cfg.Kafka, cfg.Kafka.Read()...)
	if err != nil {
		return nil, err
	}
	defer app.CloseKafka(client)

	s := &report{
		Group: cfg.Kafka.Group, Prefix: cfg.Redis.Prefix, Problems: []string{}, Partitions: []partition{}, Incomplete: []incompleteWindow{},
	}
	var log kafkaStatus
	var redis shardStates
	var both sync.WaitGroup
	both.Go(func() { log = askKafka(ctx, cfg, client) })
	both.Go(func() { redis = askShards(ctx, r) })
	both.Wait()
	if ctx.Err() != nil {
		return nil, errors.New("interrupted")
	}
	s.At = units.TimeMS(time.Now().UnixMilli())
	s.Problems = append(append(s.Problems, log.problems...), redis.problems...)
	s.Shards = shards.Reports(r.Boards.Shards(), redis.states, redis.errs)
	state := redis.together()
	s.addPartitions(cfg.Kafka.Topics, log.partitions, state)
	if slices.ContainsFunc(s.Partitions, func(p partition) bool { return (p.Stale || p.State == nil) && p.Lag != nil && *p.Lag > 0 }) {
		s.Problems = append(s.Problems, fullServers(ctx, cfg, r)...)
	}
	addBehind(ctx, cfg, client, s.Partitions)
	if state != nil {
		s.Held = state.Held
		if s.Incomplete, err = incompleteWindows(cfg, state, redis.borders); err != nil {
			return nil, err
		}
		if err := r.CheckSchema(log.cluster, redis.states); err != nil {
			s.Schema = new(err.Error())
		}
	}
	return s, nil
}

// shardStates holds the state or the error of each shard.
type shardStates struct {
	states   []ledger.State
	errs     []error
	problems []string
	borders  ranking.SettledBorders // settled bounds of windows
}

func askShards(ctx context.Context, r *app.Reader) (s shardStates) {
	s.states, s.errs = r.Boards.States(ctx)
	s.problems = app.ExplainShards(ctx, s.errs, r.Config)
	var err error
	if s.borders, err = r.Boards.SettledBorders(ctx); err != nil && s.errs[0] == nil {
		s.problems = append(s.problems, app.ExplainRedis(ctx, err, r.Config).Error())
	}
	return s
}

// together combines the states of the shards that answered; nil if none did.
func (s *shardStates) together() *ledger.State {
	var known []ledger.State
	for i, st := range s.states {
		if s.errs[i] == nil {
			known = append(known, st)
		}
	}
	if len(known) == 0 {
		return nil
	}
	return new(ledger.Together(known))
}

// fullServers names the servers that have reached their maxmemory. It is called if partitions are behind
// and have not reported recently: on a full server, consumers cannot write the report that they are waiting
// for memory. Servers that cannot be reached, or do not report their memory, are left out; the problems
// list unreachable ones anyway.
func fullServers(ctx context.Context, cfg *config.Config, r *app.Reader) []string {
	var all []string
	memories, _ := redisconn.Memories(ctx, r.Client)
	for _, m := range memories {
		if m.Max > 0 && m.Used >= m.Max {
			all = append(all, fmt.Sprintf("%s is full: %s uses %d of %d bytes of maxmemory; consumers are waiting, and cannot report it here",
				cfg.Redis.Name(), m.Server, m.Used, m.Max))
		}
	}
	return all
}

// kafkaStatus holds Kafka's answers about the configured topics.
type kafkaStatus struct {
	cluster    string
	partitions map[ledger.Partition]partition
	problems   []string
}

func askKafka(ctx context.Context, cfg *config.Config, client *kafka.Client) kafkaStatus {
	s := kafkaStatus{partitions: map[ledger.Partition]partition{}}
	m, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: cfg.Kafka.Topics})
	if err != nil {
		s.problems = append(s.problems, app.ExplainKafka(ctx, err, &cfg.Kafka, cfg.Kafka.Topics[0]).Error())
		return s
	}
	s.cluster = m.ClusterID
	for _, topic := range cfg.Kafka.Topics {
		if err := s.askTopic(ctx, cfg, client, topic); err != nil {
			s.problems = append(s.problems, app.ExplainKafka(ctx, err, &cfg.Kafka, topic).Error())
		}
	}
	if topic := cfg.Kafka.BansTopic; topic != "" {
		// A consumer that starts applies no events before it has read the bans.
		if _, err := kafkaconn.TopicPartitions(ctx, client, topic); err != nil {
			s.problems = append(s.problems, "the bans topic: "+app.ExplainKafka(ctx, err, &cfg.Kafka, topic).Error())
		}
	}
	return s
}

func (s *kafkaStatus) askTopic(ctx context.Context, cfg *config.Config, client *kafka.Client, topic string) error {
	n, err := kafkaconn.TopicPartitions(ctx, client, topic)
	if err != nil {
		return err
	}
	logs, err := kafkaconn.AllLogs(ctx, client, topic, n)
	if err != nil {
		return err
	}
	var ends map[int]int64
	err = kafkaconn.RetryTransient(ctx, client, func() (err error) {
		ends, err = kafkaconn.Ends(ctx, client, kafka.ReadUncommitted, topic, kafkaconn.UpTo(n)...)
		return err
	})
	if err != nil {
		return err
	}
	for p, log := range logs {
		s.partitions[ledger.Partition{Topic: topic, Number: p}] = partition{
			Topic: topic, Partition: p, LogStart: &log.Start, LogEnd: new(max(log.End, ends[p])), stable: log.End,
		}
	}
	return kafkaconn.RetryTransient(ctx, client, func() error {
		committed, err := kafkaconn.Committed(ctx, client, cfg.Kafka.Group, topic, kafkaconn.UpTo(n)...)
		for p, c := range committed {
			id := ledger.Partition{Topic: topic, Number: p}
			known := s.partitions[id]
			known.Committed = &c.Offset
			s.partitions[id] = known
		}
		return err
	})
}

const (
	behindAtOnce = 8
	behindWithin = 5 * time.Second // for all partitions together; slower ones are not shown
)

// addBehind reads the first uncounted record of every partition with a lag, to show its age. If that fails,
// the age remains unknown.
func addBehind(ctx context.Context, cfg *config.Config, client *kafka.Client, all []partition) {
	ctx, cancel := context.WithTimeout(ctx, min(behindWithin, cfg.Kafka.Timeout))
	defer cancel()
	var group errgroup.Group
	group.SetLimit(behindAtOnce)
	for i := range all {
		p := &all[i]
		switch {
		case p.Lag == nil:
		case *p.Lag == 0:
			p.BehindMS = new(int64)
		default:
			group.Go(func() error {
				p.BehindMS = behind(ctx, client, p)
				if t := p.OpenTransaction; t != nil && p.BehindMS != nil && *p.BehindMS == 0 { // all uncounted records are behind the transaction
					p.BehindMS = new(max(0, time.Since(t.Since).Milliseconds()))
				}
				return nil
			})
		}
	}
	_ = group.Wait() // the functions return no errors
}

// behind returns the age in ms of the first record at or after the position; nil if it is unknown.
func behind(ctx context.Context, client *kafka.Client, p *partition) *int64 {
	at, _ := ledger.Counted(*p.Position) // valid, because the lag is known
	var first int64                      // the record's time, Unix ms
	left := scan.Stretch{Client: client, Topic: p.Topic, Partition: p.Partition, From: max(at.From, *p.LogStart), End: p.stable, MaxWait: time.Millisecond, MaxBytes: 1}
	err := left.Each(ctx, func(r *recordbatch.Record) error {
		first = r.Time
		return errFound
	})
	switch {
	case err == nil:
		return new(int64) // only transaction markers are left
	case !errors.Is(err, errFound) || first <= 0:
		return nil
	}
	return new(max(0, time.Now().UnixMilli()-first))
}

var errFound = errors.New("found")
