package run

// Archiving and publishing final windows, jobs of the leader.

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/archive"
	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/archive/topic"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/jobs"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ranking/boards"
)

const (
	// archiveEvery is the interval between two passes if no window is sealed meanwhile.
	archiveEvery = time.Minute
	// backupTurn is how long the job takes backups before it looks for final windows again.
	backupTurn = 10 * time.Second
)

var (
	archiveWaiting = prometheus.NewDesc("standings_archive_waiting_windows",
		"Final windows that are not archived yet. Reported by the leader.", nil, nil)
	archiveOldest = prometheus.NewDesc("standings_archive_waiting_seconds",
		"Time since the first window that is not archived became final; 0 if none. Reported by the leader.", nil, nil)
	archiveOverdue = prometheus.NewDesc("standings_archive_backup_overdue_seconds",
		"How long the backup of a complete open window has been due: the longest, 0 if none. Reported by the leader.", nil, nil)
)

func setArchived(r *reported, p archive.Progress) {
	r.set(gauge(archiveWaiting, float64(p.Waiting)), gauge(archiveOldest, waited(p.Oldest)), gauge(archiveOverdue, p.Overdue.Seconds()))
}

// waited returns for how many seconds something has waited; 0 if nothing waits.
func waited(since time.Time) float64 {
	if since.IsZero() {
		return 0
	}
	return max(0, time.Since(since).Seconds())
}

// writer is the archive to which this process writes, in all of its terms as leader.
type writer struct {
	cfg   *config.Config
	is    *reported
	log   *zap.Logger
	store *store.Store // nil until it is open; one run of the job at a time uses it
	// ready is the store once this process has written to it.
	ready atomic.Pointer[store.Store]
	// news changes when a final window was copied, and when a pass has ended.
	news atomic.Int64
}

// close is called after the last term.
func (w *writer) close() {
	if w.store != nil {
		_ = w.store.Close() // no call is in flight
	}
}

// archiveWindows returns the job that copies windows to the archive, for one term. Each run opens the archive
// again if it is unavailable.
func (w *writer) archiveWindows(all *boards.Boards, fields func(board string) []codec.Field, t jobs.Term) jobs.Job {
	fence := store.Fence{Token: t.Token, Owner: t.Owner}
	copied := int64(0)
	taker := archive.New(archive.Config{
		Boards: all, Lateness: app.Lateness(w.cfg), Zone: app.Zones(w.cfg), Fields: fields,
		Interval: w.cfg.Archive.Interval, Turn: backupTurn, Log: w.log,
		Progress: func(p archive.Progress) {
			setArchived(w.is, p)
			if p.Final.Windows > copied {
				copied = p.Final.Windows
				w.news.Add(1)
			}
		},
	})
	return jobs.Job{Name: "archive", Every: archiveEvery, Version: all.Seals, Run: func(ctx context.Context) (next time.Duration, err error) {
		if taker.Store == nil {
			if err := w.take(ctx, fence); err != nil {
				return 0, app.Fenced(ctx, w.store, err)
			}
			taker.Store = w.store
		}
		err = taker.Pass(ctx, fence)
		setArchived(w.is, taker.Reached())
		w.news.Add(1)
		if taker.Reached().More {
			next = time.Millisecond // the pass ended early
		}
		return next, app.Fenced(ctx, w.store, err)
	}}
}

// take opens the archive, migrates its schema to this program's version, and fences every earlier leader.
func (w *writer) take(ctx context.Context, f store.Fence) (err error) {
	if w.store == nil {
		if w.store, err = app.OpenArchive(ctx, w.cfg); err != nil {
			return fmt.Errorf("open the archive: %w", err)
		}
	}
	if err := w.store.Migrate(ctx); err != nil {
		return fmt.Errorf("prepare the archive: %w", err)
	}
	if err := w.store.Take(ctx, f); err != nil {
		return err
	}
	w.ready.Store(w.store)
	return nil
}

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
