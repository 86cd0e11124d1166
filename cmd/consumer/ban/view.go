package ban

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/bans"
	"github.com/standings/standings/internal/bans/hiding"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/units"
)

// view reads the bans topic to its end, follows it, and compares it with Redis.
type view struct {
	p         *cli.Program
	cfg       *config.Config
	client    *kafka.Client
	reader    *app.Reader
	publisher *bans.Publisher
	desk      *bans.Desk
	stop      func()
}

// open reads the topic to its end. With write, it first creates the topic if it is missing.
func open(ctx context.Context, p *cli.Program, cfg *config.Config, write bool) (*view, error) {
	topic := cfg.Kafka.BansTopic
	if topic == "" {
		return nil, cli.Usagef("kafka.bans_topic is not set: set it to the same topic for all consumers")
	}
	client, err := app.NewKafka(&cfg.Kafka, topic, cfg.Kafka.Topics[0])
	if err != nil {
		return nil, err
	}
	v := &view{p: p, cfg: cfg, client: client, stop: func() {}}
	if v.reader, err = app.OpenReader(ctx, cfg); err != nil {
		v.close()
		return nil, err
	}
	if err := v.prepare(ctx, write); err != nil {
		v.close()
		return nil, v.explain(ctx, err)
	}
	f, stop, err := app.FollowBans(ctx, client, topic)
	if err != nil {
		v.close()
		return nil, v.explain(ctx, err)
	}
	v.stop = stop
	v.publisher = &bans.Publisher{Follower: f}
	v.desk = &bans.Desk{Publisher: v.publisher, Standings: v.standings}
	if n := f.Bad(); n > 0 {
		fmt.Fprintf(p.Stderr, "note: %s of %s that are no bans were ignored; the consumer logs which\n", units.Plural(n, "record"), topic)
	}
	return v, nil
}

func (v *view) prepare(ctx context.Context, write bool) error {
	topic := v.cfg.Kafka.BansTopic
	if !write {
		_, err := kafkaconn.TopicPartitions(ctx, v.client, topic)
		return err
	}
	if _, err := bans.Topic(topic).Ensure(ctx, v.client, v.cfg.Kafka.Topics[0]); err != nil && !errors.Is(err, kafkaconn.ErrUnchecked) {
		return err
	}
	return kafkaconn.CheckRights(ctx, v.client,
		bans.Need(topic), bans.NeedToBan(topic))
}

func (v *view) close() {
	v.stop()
	if v.reader != nil {
		v.reader.Close()
	}
	app.CloseKafka(v.client)
}

func (v *view) explain(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted; consumer bans shows whether it was recorded")
	case errors.Is(err, cli.ErrUsage), errors.As(err, new(*kafkaconn.TopicError)), errors.Is(err, bans.ErrErased):
		return err
	}
	if _, answered := errors.AsType[kafka.Error](err); answered {
		return app.ExplainKafka(ctx, err, &v.cfg.Kafka, v.cfg.Kafka.BansTopic)
	}
	return err
}

// standings returns the standings of all shards that exist now.
func (v *view) standings(ctx context.Context) (bans.Standings, error) {
	if err := v.reader.Renumber(ctx); err != nil {
		return nil, err
	}
	return hiding.In(v.reader.Boards), nil
}

// await waits until Redis agrees with the topic about a key. If Redis does not agree within patience, or
// cannot be read, the error explains why; the output shows it after "recorded".
func (v *view) await(ctx context.Context, k bans.Key, patience time.Duration) error {
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := v.desk.Await(within, k)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, bans.ErrNotYet):
		return fmt.Errorf("No consumer has done it in Redis within %s: one that runs will, as soon as it reads %s; consumer bans shows when",
			units.FormatDuration(patience), v.cfg.Kafka.BansTopic)
	}
	return fmt.Errorf("Redis could not be read (%w): a running consumer applies it", err)
}
