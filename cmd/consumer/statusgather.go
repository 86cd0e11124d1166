package main

// Asking Kafka and Redis for what status shows. Either may be away: then the other
// is shown alone.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"github.com/standings/standings/cmd/consumer/clients"
	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/connect"
	"github.com/standings/standings/internal/ingest/fetch"
	"github.com/standings/standings/internal/ingest/recordbatch"
	"github.com/standings/standings/internal/ledger"
)

// gatherStatus asks both sides at once. What can't be reached is among the
// report's problems, and no error.
func gatherStatus(ctx context.Context, cfg *config.Config) (*statusReport, error) {
	r, err := clients.OpenReader(cfg)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	client, err := clients.NewKafka(&cfg.Kafka, cfg.Kafka.Topics...)
	if err != nil {
		return nil, err
	}
	defer clients.CloseKafka(client)

	var log kafkaStatus
	var state *ledger.State
	var noState error
	var both sync.WaitGroup
	both.Go(func() { log = askKafka(ctx, cfg, client) })
	both.Go(func() {
		found, err := r.Store.State(ctx)
		if err != nil {
			noState = clients.ExplainRedis(ctx, err, cfg)
			return
		}
		state = &found
	})
	both.Wait()
	if ctx.Err() != nil {
		return nil, errors.New("interrupted")
	}

	s := &statusReport{
		At: units.TimeMS(time.Now().UnixMilli()), Group: cfg.Kafka.Group, Prefix: cfg.Redis.Prefix,
		Problems: log.problems, Partitions: []partitionReport{}, Incomplete: []incompleteReport{},
	}
	if noState != nil {
		s.Problems = append(s.Problems, noState.Error())
	}
	for _, id := range partitionsOf(cfg.Kafka.Topics, log.partitions, state) {
		var facts *logFacts
		if f, ok := log.partitions[id]; ok {
			facts = &f
		}
		s.Partitions = append(s.Partitions, reportPartition(id, facts, state))
	}
	if slices.ContainsFunc(s.Partitions, func(p partitionReport) bool { return (p.Stale || p.State == nil) && p.Lag != nil && *p.Lag > 0 }) {
		s.Problems = append(s.Problems, fullServers(ctx, cfg, r)...)
	}
	addBehind(ctx, cfg, client, s.Partitions)
	if state != nil {
		s.Held = state.Held
		if s.Incomplete, err = incompleteWindows(cfg, r.Calendar, state); err != nil {
			return nil, err
		}
		s.Schema = difference(r, log.cluster, state.Schema)
	}
	return s, nil
}

// fullServers names the servers that are at their maxmemory, where partitions are behind and
// haven't reported lately: consumers can't write there that they wait for room. Where Redis doesn't report it nothing is known, as where it can't
// be reached, which is among the problems anyway.
func fullServers(ctx context.Context, cfg *config.Config, r *clients.Reader) []string {
	var all []string
	memories, _ := r.Store.Memories(ctx)
	for _, m := range memories {
		if m.Max > 0 && m.Used >= m.Max {
			all = append(all, fmt.Sprintf("%s is full: %s uses %d of %d bytes of maxmemory; consumers wait for room, and can't report it here",
				cfg.Redis.Name(), m.Server, m.Used, m.Max))
		}
	}
	return all
}

// difference says how the configuration differs from what the scores were written
// with, nil where it doesn't.
func difference(r *clients.Reader, cluster, found string) *string {
	err := r.CheckSchema(cluster, found)
	if err == nil {
		return nil
	}
	text := err.Error()
	return &text
}

// kafkaStatus is what Kafka says of the configured topics.
type kafkaStatus struct {
	cluster    string
	partitions map[clients.PartitionID]logFacts
	problems   []string
}

func askKafka(ctx context.Context, cfg *config.Config, client *kafka.Client) kafkaStatus {
	s := kafkaStatus{partitions: map[clients.PartitionID]logFacts{}, problems: []string{}}
	m, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: cfg.Kafka.Topics})
	if err != nil {
		s.problems = append(s.problems, clients.ExplainKafka(ctx, err, &cfg.Kafka, cfg.Kafka.Topics[0]).Error())
		return s
	}
	s.cluster = m.ClusterID
	for _, topic := range cfg.Kafka.Topics {
		if err := s.askTopic(ctx, cfg, client, topic); err != nil {
			s.problems = append(s.problems, clients.ExplainKafka(ctx, err, &cfg.Kafka, topic).Error())
		}
	}
	return s
}

func (s *kafkaStatus) askTopic(ctx context.Context, cfg *config.Config, client *kafka.Client, topic string) error {
	n, err := clients.TopicPartitions(ctx, client, topic)
	if err != nil {
		return err
	}
	logs, err := ingest.Logs(ctx, client, topic, n)
	if err != nil {
		return err
	}
	for p, log := range logs {
		s.partitions[clients.PartitionID{Topic: topic, Partition: p}] = logFacts{start: log.Start, end: log.End}
	}
	committed, err := ingest.Committed(ctx, client, cfg.Kafka.Group, topic, n)
	if err != nil {
		return err
	}
	for p, c := range committed {
		id := clients.PartitionID{Topic: topic, Partition: p}
		f := s.partitions[id]
		f.committed = &c.Offset
		s.partitions[id] = f
	}
	return nil
}

const (
	behindAtOnce = 8
	behindWithin = 5 * time.Second // for all partitions; what takes longer isn't shown
)

// addBehind reads the first record that doesn't count yet, of every partition with
// a lag. It is a courtesy: what fails stays unknown.
func addBehind(ctx context.Context, cfg *config.Config, client *kafka.Client, all []partitionReport) {
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
				return nil
			})
		}
	}
	_ = group.Wait() // none fails
}

// behind is the age of the first record at or after the position, nil where it
// can't be told.
func behind(ctx context.Context, client *kafka.Client, p *partitionReport) *int64 {
	f := fetch.Fetcher{Transport: client.Transport, Addr: client.Addr, ClientID: connect.ClientID,
		Topic: p.Topic, Partition: p.Partition, MaxWait: time.Millisecond, MaxBytes: 1}
	defer func() { _ = f.Drop(ctx) }() // the context bounds it
	var records recordbatch.Reader
	defer records.Close()
	at, _ := counted(*p.Position)
	for at = max(at, *p.LogStart); at < *p.LogEnd; {
		response, err := f.Fetch(ctx, at)
		if err != nil || response.Err != nil {
			return nil
		}
		if !response.Answered() && response.Throttled > 0 {
			continue // a quota is used up: the next fetch waits for that
		}
		records.Reset(response.Records, at, response.Aborted)
		record, err := records.Next()
		if err == nil {
			if record.Time <= 0 {
				return nil
			}
			age := max(0, time.Now().UnixMilli()-record.Time)
			return &age
		}
		if !errors.Is(err, io.EOF) || records.Position() == at {
			return nil
		}
		at = records.Position()
	}
	return new(int64) // what is left carries no record: the ends of transactions
}
