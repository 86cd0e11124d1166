package kafkaconn

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"
)

// TopicSettings is a topic's configuration by Kafka's names, such as retention.ms with 604800000. It omits
// settings that the broker does not report.
type TopicSettings map[string]string

// Retention returns how long the topic keeps events; false if the broker does not report it or it is
// unlimited.
func (s TopicSettings) Retention() (time.Duration, bool) {
	kept, err := strconv.ParseInt(s["retention.ms"], 10, 64)
	if err != nil || kept < 0 {
		return 0, false
	}
	const longest = int64(1<<63-1) / int64(time.Millisecond)
	return time.Duration(min(kept, longest)) * time.Millisecond, true
}

// ReadTopicSettings reads a topic's configuration.
func ReadTopicSettings(ctx context.Context, client *kafka.Client, topic string) (TopicSettings, error) {
	r, err := client.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{
		Resources: []kafka.DescribeConfigRequestResource{{ResourceType: kafka.ResourceTypeTopic, ResourceName: topic}},
	})
	if err != nil {
		return nil, fmt.Errorf("read the configuration of %s: %w", topic, err)
	}
	all := TopicSettings{}
	for _, res := range r.Resources {
		if res.Error != nil {
			return nil, fmt.Errorf("read the configuration of %s: %w", topic, res.Error)
		}
		for _, e := range res.ConfigEntries {
			all[e.ConfigName] = e.ConfigValue
		}
	}
	return all, nil
}
