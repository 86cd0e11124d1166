package rebuild

import (
	"context"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/bans"
	"github.com/standings/standings/internal/bans/hiding"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ranking/boards"
)

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
