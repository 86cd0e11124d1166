package app

// Bans: the connection of the bans topic and the standings.

import (
	"context"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/bans"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/kafkaconn"
)

// bansWithin is the maximum time for reading the bans topic to its end.
const bansWithin = 30 * time.Second

// FollowBans reads the bans topic to its end, and follows it until stop is called.
func FollowBans(ctx context.Context, client *kafka.Client, topic string) (f *bans.Follower, stop func(), err error) {
	f = bans.NewFollower(client, topic, zap.NewNop())
	following, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.Run(following)
	}()
	stop = func() { cancel(); <-ended }
	within, cancelWithin := context.WithTimeout(ctx, bansWithin)
	defer cancelWithin()
	if err = f.Ready(within, 0); err == nil {
		return f, stop, nil
	}
	if waits := f.Waits(); waits != nil && ctx.Err() == nil {
		err = waits
	}
	stop()
	return nil, nil, fmt.Errorf("read %s to its end: %w", topic, err)
}

// BansRights returns the rights that run needs on the bans topic.
func BansRights(cfg *config.Config) []kafkaconn.Right {
	needs := []kafkaconn.Right{bans.Need(cfg.Kafka.BansTopic)}
	if cfg.API.Listen != config.Off && cfg.API.BansTokensFile != "" {
		needs = append(needs, bans.NeedToBan(cfg.Kafka.BansTopic))
	}
	return needs
}
