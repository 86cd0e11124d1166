package run

// Publishing final windows to a topic, a job of the leader.

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/archive/topic"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/jobs"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ranking/boards"
)

const (
	// publishEvery is the interval between two passes if no window is sealed, or archived, meanwhile.
	publishEvery = time.Minute
	// unarchivedEvery is how often the job runs before this process has written to the archive.
	unarchivedEvery = time.Second
)

var (
	finalWaiting = prometheus.NewDesc("standings_final_topic_waiting_windows",
		"Final windows that are not published yet. Reported by the leader.", nil, nil)
	finalOldest = prometheus.NewDesc("standings_final_topic_waiting_seconds",
		"Time since the first unpublished window became final; 0 if none. Reported by the leader.", nil, nil)
	finalWindows = prometheus.NewDesc("standings_final_topic_windows",
		"Windows published by this replica since it became leader. Reported by the leader.", nil, nil)
	finalStandings = prometheus.NewDesc("standings_final_topic_standings",
		"Standings published by this replica since it became leader. Reported by the leader.", nil, nil)
)

func newPublished() *reported {
	return newReported(finalWaiting, finalOldest, finalWindows, finalStandings)
}

func setPublished(r *reported, p topic.Progress) {
	r.set(gauge(finalWaiting, float64(p.Waiting)), gauge(finalOldest, waited(p.Oldest)),
		gauge(finalWindows, float64(p.Windows)), gauge(finalStandings, float64(p.Standings)))
}

// publishWindows returns the job that publishes final windows: from the archive, if there is one, else from
// Redis. It needs no fencing token: the epoch of the producer stops an earlier leader's writes.
func (p *process) publishWindows(cfg *config.Config, all *boards.Boards, w *writer, fields func(board string) []codec.Field) jobs.Job {
	k, client := &cfg.Kafka, p.topicsClient(cfg)
	of := topic.Config{
		Boards: all, Kafka: client,
		Producer: func(options ...kgo.Opt) (*kgo.Client, error) { return app.NewProducer(k, options...) },
		Topic:    k.FinalTopic, TransactionalID: topic.TransactionalID(k.Group, cfg.Redis.Prefix), Source: topic.SourceOf(k.Group, cfg.Redis.Prefix),
		Lateness: app.Lateness(cfg), Zone: app.Zones(cfg), Fields: fields, Report: func(is topic.Progress) { setPublished(p.ops.published, is) }, Log: p.log,
		Ready: func(ctx context.Context) error { return ensureFinalTopic(ctx, cfg, client, p.log) },
		Explain: func(ctx context.Context, err error, topic string) error {
			return app.ExplainPublishing(ctx, err, k, topic)
		},
	}
	job := jobs.Job{Name: "publish", Every: publishEvery, Version: all.Seals}
	if cfg.Archive.URL != "" {
		job.Version = func(context.Context) (int64, error) { return w.news.Load(), nil }
	}
	var publisher *topic.Publisher
	job.Run = func(ctx context.Context) (time.Duration, error) {
		if publisher == nil {
			if of.Archive = w.ready.Load(); of.Archive == nil && cfg.Archive.URL != "" {
				return unarchivedEvery, nil // the archive job reports why
			}
			publisher = topic.New(of)
		}
		return 0, publisher.Pass(ctx)
	}
	return job
}

func (p *process) topicsClient(cfg *config.Config) *kafka.Client {
	return &kafka.Client{Addr: kafka.TCP(cfg.Kafka.Brokers...), Transport: kafkaconn.Robust(p.transport), Timeout: cfg.Kafka.Timeout}
}

// ensureFinalTopic creates the missing topics, and checks that this user may use them.
func ensureFinalTopic(ctx context.Context, cfg *config.Config, client *kafka.Client, log *zap.Logger) error {
	name := cfg.Kafka.FinalTopic
	err := kafkaconn.CheckRights(ctx, client, app.FinalTopicRights(cfg)...)
	if err == nil {
		var made []string
		made, err = topic.Ensure(ctx, client, name, cfg.Kafka.Topics[0])
		if len(made) > 0 {
			log.Info("topics for final windows created", zap.Strings("topics", made))
		}
	}
	switch {
	case errors.Is(err, kafkaconn.ErrUnchecked):
		log.Warn(err.Error(), zap.String("topic", cfg.Kafka.PublishedTopic()))
		return nil
	case errors.As(err, new(*kafkaconn.TopicError)):
		return err
	}
	return app.ExplainKafka(ctx, err, &cfg.Kafka, name)
}

// checkFinalTopic stops the start if the operator must act: a right is missing, or a topic would delete what is
// published. It only logs a transient error: the leader retries, and nothing else waits for it.
func (p *process) checkFinalTopic(ctx context.Context, cfg *config.Config) error {
	if cfg.Kafka.FinalTopic == "" {
		return nil
	}
	err := ensureFinalTopic(ctx, cfg, p.topicsClient(cfg), p.log)
	if errors.As(err, new(*kafkaconn.TopicError)) || errors.As(err, new(*kafkaconn.RightsError)) {
		return err
	}
	if err != nil && ctx.Err() == nil {
		p.log.Warn("could not check the topics for final windows: the leader retries", zap.String("topic", cfg.Kafka.FinalTopic), zap.Error(err))
	}
	return nil
}
