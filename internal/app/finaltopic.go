package app

import (
	"github.com/standings/standings/internal/archive/topic"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/kafkaconn"
)

// FinalTopicRights returns the rights that run needs to publish final windows.
func FinalTopicRights(cfg *config.Config) []kafkaconn.Right {
	return topic.Needs(cfg.Kafka.FinalTopic, topic.TransactionalID(cfg.Kafka.Group, cfg.Redis.Prefix))
}
