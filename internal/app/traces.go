package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/kafkaconn"
)

// traces returns the function for ingest.Config.Traces, which looks for windows in the archive and for records
// in the final topic.
func traces(cfg *config.Config, client *kafka.Client) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		if some, err := archived(ctx, cfg); some || err != nil {
			return "the archive has windows", err
		}
		topic := cfg.Kafka.FinalTopic
		if topic == "" {
			return "", nil
		}
		n, err := kafkaconn.TopicPartitions(ctx, client, topic)
		if errors.Is(err, kafkaconn.ErrNoTopic) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		logs, err := kafkaconn.AllLogs(ctx, client, topic, n)
		if err != nil {
			return "", err
		}
		for _, log := range logs {
			if log.End > log.Start {
				return "topic " + topic + " has final windows", nil
			}
		}
		return "", nil
	}
}

// archived reports whether the archive has any window.
func archived(ctx context.Context, cfg *config.Config) (some bool, err error) {
	archive, err := OpenArchive(ctx, cfg)
	if archive == nil || err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, archive.Close()) }()
	if err := archive.Check(ctx); err != nil {
		if errors.Is(err, store.ErrEmpty) {
			return false, nil
		}
		return false, err
	}
	windows, err := archive.Windows(ctx, store.Filter{}, store.Place{}, 1)
	if err != nil {
		return false, fmt.Errorf("look for windows in the archive: %w", err)
	}
	return len(windows) > 0, nil
}
