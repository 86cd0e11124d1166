package rebuild

// This file prepares Kafka and Redis for a rebuild.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/cmd/consumer/logging"
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/ranking/shadow"
	"github.com/standings/standings/internal/rebuild"
	"github.com/standings/standings/internal/redisconn"
)

// lease is how long a rebuild's keys in Redis outlive its process.
const lease = time.Minute

// prepare connects to Redis and Kafka, and tries the commands that a rebuild needs. It returns a job
// without the settings from the command line, the configuration with the actual number of shards, and a
// function that closes the connections.
func prepare(ctx context.Context, cfg *config.Config, shown *show) (job *rebuild.Job, numbered *config.Config, end func(), err error) {
	var opened []func()
	closeAll := func() {
		for _, end := range slices.Backward(opened) {
			end()
		}
	}
	defer func() {
		if err != nil {
			closeAll()
		}
	}()
	client, err := app.NewRedis(cfg, func(ctx context.Context, conn *redis.Conn) error {
		return redisconn.CheckEviction(ctx, conn, cfg.Redis.AssumeNoeviction)
	})
	if err != nil {
		return nil, nil, nil, err
	}
	opened = append(opened, func() { _ = client.Close() }) // no call is in flight
	cfg, _ = app.Numbered(ctx, cfg, client)                // if this fails, later calls ask Redis again
	settings, err := cfg.Kafka.Connection()
	if err != nil {
		return nil, nil, nil, err
	}
	transport := app.NewTransport(cfg, settings)
	opened = append(opened, transport.CloseIdleConnections)
	asked, err := metadataOf(ctx, cfg, transport)
	if err != nil {
		return nil, nil, nil, err
	}
	all, err := app.NewBoards(cfg, client, asked.ClusterID)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := all.Try(ctx, cfg.Redis.AssumeNoeviction); err != nil {
		return nil, nil, nil, app.ExplainRedis(ctx, err, cfg)
	}
	for _, store := range all.Shards() {
		if err := shadow.TryCommands(ctx, store); err != nil {
			return nil, nil, nil, app.ExplainRedis(ctx, err, cfg)
		}
	}
	others, err := topicsBeside(ctx, cfg, all)
	if err != nil {
		return nil, nil, nil, app.ExplainRedis(ctx, err, cfg)
	}
	if len(others) > 0 {
		transport = app.NewTransport(cfg, settings, others...)
		opened = append(opened, transport.CloseIdleConnections)
	}
	log := logging.Notes(shown.note)
	if err := app.CheckDuplicates(cfg, allPartitions(asked)); err != nil {
		return nil, nil, nil, err
	}
	app.LimitMemory(cfg, allPartitions(asked), log)
	align, endBans, err := openBans(ctx, cfg, all, log)
	if err != nil {
		return nil, nil, nil, err
	}
	opened = append(opened, endBans)
	job = &rebuild.Job{
		Live: all.Shards(), Bans: align, Owner: app.Owner(), Lease: lease,
		Replay: func(into []*shadow.Store) (*replay.Replay, error) {
			return app.NewReplay(cfg, settings, transport, into, log)
		},
		Watch: rebuild.Watch{Planned: shown.planned, Reading: shown.reading, Note: shown.note},
	}
	return job, cfg, closeAll, nil
}

// topicsBeside returns the topics in the ledger that are no longer configured. The boards contain their
// events, so the rebuilt boards must contain them too.
func topicsBeside(ctx context.Context, cfg *config.Config, boards *boards.Boards) ([]string, error) {
	live, err := boards.State(ctx)
	if err != nil {
		return nil, err
	}
	var all []string
	for field := range live.Ledger {
		p, err := ledger.ParsePartition(field)
		if err == nil && !slices.Contains(cfg.Kafka.Topics, p.Topic) && !slices.Contains(all, p.Topic) {
			all = append(all, p.Topic)
		}
	}
	return all, nil
}

// metadataOf returns the cluster's id and checks that the topics exist. It waits until new topics have
// leaders.
func metadataOf(ctx context.Context, cfg *config.Config, transport *kafkaconn.Transport) (*kafka.MetadataResponse, error) {
	client := &kafka.Client{Addr: kafka.TCP(cfg.Kafka.Brokers...), Transport: transport, Timeout: cfg.Kafka.Timeout}
	var m *kafka.MetadataResponse
	err := kafkaconn.RetryTransient(ctx, client, func() (err error) {
		if m, err = client.Metadata(ctx, &kafka.MetadataRequest{Topics: cfg.Kafka.Topics}); err != nil {
			return err
		}
		for _, t := range m.Topics {
			if errors.Is(t.Error, kafka.LeaderNotAvailable) {
				return fmt.Errorf("topic %s: %w", t.Name, t.Error)
			}
		}
		return nil
	})
	if err != nil {
		return nil, app.ExplainKafka(ctx, err, &cfg.Kafka, cfg.Kafka.Topics[0])
	}
	for _, t := range m.Topics {
		if t.Error != nil {
			return nil, app.ExplainKafka(ctx, t.Error, &cfg.Kafka, t.Name)
		}
	}
	return m, nil
}

func allPartitions(m *kafka.MetadataResponse) int {
	n := 0
	for _, t := range m.Topics {
		n += len(t.Partitions)
	}
	return n
}
