package run

// Bans: the bans topic is read before anything is applied, and then followed.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/bans"
	"github.com/standings/standings/internal/bans/hiding"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/units"
)

// openBans creates the bans topic if it is missing, and starts to read it. It does nothing if no topic is
// configured. The reading has ended when closeBans returns.
func (p *process) openBans(ctx context.Context, cfg *config.Config) (closeBans func(), err error) {
	topic := cfg.Kafka.BansTopic
	if topic == "" {
		return func() {}, nil
	}
	client := p.topicsClient(cfg)
	err = await(ctx, p.log, "the bans topic", classifyBans, p.ops.waitsForBans, func() error {
		if err := kafkaconn.CheckRights(ctx, client, app.BansRights(cfg)...); err != nil {
			return err
		}
		made, err := bans.Topic(topic).Ensure(ctx, client, cfg.Kafka.Topics[0])
		if made {
			p.log.Info("bans topic created", zap.String("topic", topic))
		}
		if errors.Is(err, kafkaconn.ErrUnchecked) {
			p.log.Warn(err.Error(), zap.String("topic", topic))
			return nil
		}
		if err != nil && !errors.As(err, new(*kafkaconn.TopicError)) {
			return app.ExplainKafka(ctx, err, &cfg.Kafka, topic)
		}
		return err
	})
	if err != nil || ctx.Err() != nil {
		return func() {}, err
	}
	p.bans = bans.NewFollower(client, topic, p.log)
	running, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.bans.Run(running)
	}()
	return func() { stop(); <-ended }, nil
}

// desk returns the desk for bans through the API; nil without a bans topic.
func (p *process) desk() *bans.Desk {
	if p.bans == nil {
		return nil
	}
	return &bans.Desk{Publisher: &bans.Publisher{Follower: p.bans}, Standings: func(context.Context) (bans.Standings, error) {
		keeper := p.keeper.Load() // of the current shards
		if keeper == nil {
			return nil, errNotAligned
		}
		return keeper.Standings, nil
	}}
}

var errNotAligned = errors.New("the standings haven't been brought in line with the bans topic yet")

func classifyBans(err error) ledger.Verdict {
	if errors.As(err, new(*kafkaconn.TopicError)) {
		return ledger.Refuse
	}
	return kafkaconn.Classify(err)
}

// readWithin is how long to wait for the end of the bans topic before checking what delays the reading.
const readWithin = time.Second

// alignBans waits until the bans topic was read to its end and the standings are in line with it. Nothing is
// applied before. It returns nil if no topic is configured.
func (p *process) alignBans(ctx context.Context, cfg *config.Config, all *boards.Boards) (*bans.Keeper, error) {
	if p.bans == nil {
		p.sayBansLeft(ctx, all)
		return nil, nil
	}
	err := await(ctx, p.log, "the bans topic", func(error) ledger.Verdict { return ledger.Retry }, p.ops.waitsForBans, func() error {
		within, cancel := context.WithTimeout(ctx, readWithin)
		defer cancel()
		if err := p.bans.Ready(within, 0); err != nil {
			if waits := p.bans.Waits(); waits != nil {
				return waits
			}
			return fmt.Errorf("the bans topic %s is being read: %w", cfg.Kafka.BansTopic, err)
		}
		return nil
	})
	if err != nil || ctx.Err() != nil {
		return nil, err
	}
	keeper := bans.NewKeeper(p.bans, hiding.In(all), p.log)
	err = await(ctx, p.log, "Redis, to hide who is banned", ranking.Classify, p.ops.waitsForRedis, func() error { return keeper.Align(ctx) })
	if err != nil {
		return nil, app.ExplainRedis(ctx, err, cfg)
	}
	p.keeper.Store(keeper)
	return keeper, nil
}

// sayBansLeft warns if Redis still hides members by bans of an earlier configuration: without the topic they
// stay hidden.
func (p *process) sayBansLeft(ctx context.Context, all *boards.Boards) {
	left, err := hiding.In(all).Banned(ctx)
	switch {
	case err != nil && ctx.Err() == nil:
		p.log.Warn("could not check Redis for bans of an earlier configuration", zap.Error(err))
	case len(left) > 0:
		p.log.Warn("kafka.bans_topic is not set, but Redis hides members by "+units.Plural(int64(len(left)), "ban")+
			" of an earlier configuration: they stay hidden. Name the topic again, to keep them or to take them back", zap.Int("bans", len(left)))
	}
}

func (r *readiness) waitsForBans(err error) {
	r.waits(waitsBans, "it waits for the bans topic "+r.cfg.Kafka.BansTopic+", as it would show who is banned", err, "make sure that the topic exists and can be read; it continues by itself")
}
