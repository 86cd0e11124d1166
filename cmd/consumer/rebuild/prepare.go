package rebuild

// This file prepares Kafka and Redis for a rebuild.

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/standings/standings/cmd/consumer/logging"
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/bans"
	"github.com/standings/standings/internal/bans/hiding"
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
	cluster, partitions, err := askKafka(ctx, cfg, transport)
	if err != nil {
		return nil, nil, nil, err
	}
	all, err := app.NewBoards(cfg, client, cluster)
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
	if err := app.CheckDuplicates(cfg, partitions); err != nil {
		return nil, nil, nil, err
	}
	app.LimitMemory(cfg, partitions, log)
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

// askKafka returns the cluster's id and the number of partitions of all topics. It checks that the topics exist,
// and waits until new topics have leaders.
func askKafka(ctx context.Context, cfg *config.Config, transport *kafkaconn.Transport) (cluster string, partitions int, err error) {
	client := &kafka.Client{Addr: kafka.TCP(cfg.Kafka.Brokers...), Transport: transport, Timeout: cfg.Kafka.Timeout}
	for _, topic := range cfg.Kafka.Topics {
		n, err := kafkaconn.TopicPartitions(ctx, client, topic)
		if err != nil {
			return "", 0, app.ExplainKafka(ctx, err, &cfg.Kafka, topic)
		}
		partitions += n
	}
	m, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: cfg.Kafka.Topics})
	if err != nil {
		return "", 0, app.ExplainKafka(ctx, err, &cfg.Kafka, cfg.Kafka.Topics[0])
	}
	return m.ClusterID, partitions, nil
}

// openBans reads the bans topic and returns a function that applies the bans to the boards; nil if no topic
// is configured. end stops reading.
func openBans(ctx context.Context, cfg *config.Config, all *boards.Boards, log *zap.Logger) (align func(context.Context) error, end func(), err error) {
	topic := cfg.Kafka.BansTopic
	if topic == "" {
		return nil, func() {}, nil
	}
	client, err := app.NewKafka(&cfg.Kafka, topic, cfg.Kafka.Topics[0])
	if err != nil {
		return nil, nil, err
	}
	if err = kafkaconn.CheckRights(ctx, client, bans.Need(topic)); err == nil {
		_, err = kafkaconn.TopicPartitions(ctx, client, topic)
	}
	var f *bans.Follower
	var stop func()
	if err == nil {
		f, stop, err = app.FollowBans(ctx, client, topic)
	}
	if err != nil {
		app.CloseKafka(client)
		return nil, nil, app.ExplainKafka(ctx, err, &cfg.Kafka, topic)
	}
	end = func() {
		stop()
		app.CloseKafka(client)
	}
	return bans.NewKeeper(f, hiding.In(all), log).Align, end, nil
}
