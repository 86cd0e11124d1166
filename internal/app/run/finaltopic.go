package run

// Final windows are published to a topic by one replica of all, the leader: the same that writes the
// archive, where there is one.

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/archive/topic"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/lease"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/retry"
)

// publishEvery is between two looks for windows that aren't published.
const publishEvery = time.Minute

var (
	finalLeader = prometheus.NewDesc("standings_final_topic_leader",
		"1 if this replica publishes final windows, else 0. Only with kafka.final_topic.", nil, nil)
	finalWaiting = prometheus.NewDesc("standings_final_topic_waiting_windows",
		"Final windows that are not published yet. Reported by the leader.", nil, nil)
	finalOldest = prometheus.NewDesc("standings_final_topic_waiting_seconds",
		"Time since the first unpublished window became final; 0 if none. Reported by the leader.", nil, nil)
	finalWindows = prometheus.NewDesc("standings_final_topic_windows",
		"Windows published by this replica since it became leader. Reported by the leader.", nil, nil)
	finalStandings = prometheus.NewDesc("standings_final_topic_standings",
		"Standings published by this replica since it became leader. Reported by the leader.", nil, nil)
	finalErrors = prometheus.NewDesc("standings_final_topic_errors_total",
		"Failed attempts of this replica to publish final windows; each is retried.", nil, nil)
	finalPass = prometheus.NewDesc("standings_final_topic_last_success_timestamp_seconds",
		"Unix time when all final windows were last published. Reported by the leader.", nil, nil)
)

// publishing is what is reported of the topic.
type publishing struct {
	*reported

	failed    int
	succeeded time.Time
}

func newPublishing() *publishing {
	return &publishing{reported: newReported(finalLeader, finalWaiting, finalOldest, finalWindows, finalStandings, finalErrors, finalPass)}
}

func (p *publishing) errors() prometheus.Metric {
	return prometheus.MustNewConstMetric(finalErrors, prometheus.CounterValue, float64(p.failed))
}

// follows is what a replica reports that doesn't lead.
func (p *publishing) follows() { p.set(gauge(finalLeader, 0), p.errors()) }

func (p *publishing) leads(is topic.Progress) {
	oldest := 0.0
	if !is.Oldest.IsZero() {
		oldest = max(0, time.Since(is.Oldest).Seconds())
	}
	all := []prometheus.Metric{gauge(finalLeader, 1), p.errors(), gauge(finalWaiting, float64(is.Waiting)), gauge(finalOldest, oldest),
		gauge(finalWindows, float64(is.Windows)), gauge(finalStandings, float64(is.Standings))}
	if !p.succeeded.IsZero() {
		all = append(all, gauge(finalPass, float64(p.succeeded.Unix())))
	}
	p.set(all...)
}

// finalTopic publishes while this replica leads. Without a topic it does nothing.
type finalTopic struct {
	cfg     *config.Config
	all     *boards.Boards
	archive *store.Store // nil: from Redis
	client  *kafka.Client
	is      *publishing
	log     *zap.Logger
	news    <-chan struct{} // has something once there may be windows to publish
}

// finalTopic publishes from the archive, if there is one, else from Redis.
func (p *process) finalTopic(cfg *config.Config, all *boards.Boards, from *store.Store, news <-chan struct{}) *finalTopic {
	f := &finalTopic{cfg: cfg, all: all, archive: from, client: p.topicsClient(cfg), is: p.ops.published, log: p.log, news: news}
	if cfg.Kafka.FinalTopic != "" {
		f.is.follows()
	}
	return f
}

func (p *process) topicsClient(cfg *config.Config) *kafka.Client {
	return &kafka.Client{Addr: kafka.TCP(cfg.Kafka.Brokers...), Transport: kafkaconn.Robust(p.transport), Timeout: cfg.Kafka.Timeout}
}

// publishAlone publishes without an archive, and returns when the context ends. No token keeps an earlier
// leader from writing: its producer's epoch does.
func (p *process) publishAlone(ctx context.Context, cfg *config.Config, all *boards.Boards) {
	if cfg.Kafka.FinalTopic == "" {
		return
	}
	f := p.finalTopic(cfg, all, nil, p.sealed)
	defer f.is.none()
	l := lease.Lease{Redis: all.Shards()[0], Owner: lease.NewOwner(), Length: leaderLease, Log: p.log.Named("final topic"),
		Floor: func(context.Context) (int64, error) { return 0, nil }}
	if err := l.Run(ctx, f.lead); err != nil {
		p.log.Error("nothing is published", zap.Error(err)) // a lease that can't be one: a bug
	}
}

// beside has two works done side by side; the first that ends by itself ends the other.
func beside(one, other func(context.Context, int64) error) func(context.Context, int64) error {
	return func(ctx context.Context, token int64) error {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		var both sync.WaitGroup
		var failed [2]error
		for i, do := range []func(context.Context, int64) error{one, other} {
			both.Go(func() {
				defer stop()
				failed[i] = do(ctx, token)
			})
		}
		both.Wait()
		for _, err := range failed { // the one that has ended the other says why
			if err != nil && !errors.Is(err, context.Canceled) {
				return err
			}
		}
		return errors.Join(failed[:]...)
	}
}

// signal leaves word for whoever waits, once.
func signal(news chan<- struct{}) {
	select {
	case news <- struct{}{}:
	default: // it is there already
	}
}

// lead publishes while this replica leads.
func (f *finalTopic) lead(ctx context.Context, _ int64) error {
	if f.cfg.Kafka.FinalTopic == "" {
		<-ctx.Done()
		return ctx.Err()
	}
	defer f.is.follows()
	fields, err := app.ArchivedFields(f.cfg)
	if err != nil {
		return err
	}
	k := &f.cfg.Kafka
	publisher := topic.New(topic.Config{
		Boards: f.all, Archive: f.archive, Kafka: f.client,
		Producer: func(options ...kgo.Opt) (*kgo.Client, error) { return app.NewProducer(k, options...) },
		Topic:    k.FinalTopic, TransactionalID: topic.TransactionalID(k.Group, f.cfg.Redis.Prefix), Source: topic.SourceOf(k.Group, f.cfg.Redis.Prefix),
		Lateness: app.Lateness(f.cfg), Zone: app.Zones(f.cfg), Fields: fields, Report: f.is.leads, Log: f.log,
		Ready: func(ctx context.Context) error { return ensureFinalTopic(ctx, f.cfg, f.client, f.log) },
		Explain: func(ctx context.Context, err error, topic string) error {
			return app.ExplainPublishing(ctx, err, k, topic)
		},
	})
	f.is.leads(topic.Progress{})
	for f.archive != nil && errors.Is(f.archive.Check(ctx), store.ErrSchemaOlder) { // this replica is about to migrate it
		if err := retry.Sleep(ctx, time.Second); err != nil {
			return err
		}
	}
	var said retry.LogLimit
	for {
		err := publisher.Pass(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			f.is.failed++
			if said.Due(sayUnpublished) {
				f.log.Warn("could not publish all final windows: they stay in Redis and are retried", zap.String("topic", k.FinalTopic), zap.Error(err))
			}
		default:
			f.is.succeeded = time.Now()
			said.Reset()
		}
		f.is.leads(publisher.Reached())
		if errors.Is(err, topic.ErrFenced) {
			return err
		}
		select {
		case <-time.After(publishEvery):
		case <-f.news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// sayUnpublished is how often it is logged that windows can't be published.
const sayUnpublished = 10 * time.Minute

// ensureFinalTopic has the topics be there, as this user may use them.
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
	case errors.Is(err, topic.ErrUnchecked):
		log.Warn(err.Error(), zap.String("topic", cfg.Kafka.PublishedTopic()))
		return nil
	case errors.As(err, new(*topic.PolicyError)):
		return err
	}
	return app.ExplainKafka(ctx, err, &cfg.Kafka, name)
}

// checkFinalTopic ends the start where an operator has to help: a right is missing, or a topic would
// forget what is published. What may pass is the leader's to wait for, and holds up nothing else.
func (p *process) checkFinalTopic(ctx context.Context, cfg *config.Config) error {
	if cfg.Kafka.FinalTopic == "" {
		return nil
	}
	err := ensureFinalTopic(ctx, cfg, p.topicsClient(cfg), p.log)
	if errors.As(err, new(*topic.PolicyError)) || errors.As(err, new(*kafkaconn.RightsError)) {
		return err
	}
	if err != nil && ctx.Err() == nil {
		p.log.Warn("could not check the topics for final windows: the leader retries", zap.String("topic", cfg.Kafka.FinalTopic), zap.Error(err))
	}
	return nil
}
