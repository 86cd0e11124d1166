package ingest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/periods"
)

// TopicSettings is a topic's configuration by Kafka's own names: retention.ms to
// 604800000. What a broker doesn't tell or doesn't know yet isn't in it.
type TopicSettings map[string]string

// CompactError says that a topic drops events whose key comes again.
type CompactError struct{ Topic, Policy string }

func (e *CompactError) Error() string {
	return fmt.Sprintf("topic %s has cleanup.policy=%s: events with equal keys would vanish before they are counted or counted again; "+
		"set cleanup.policy=delete", e.Topic, e.Policy)
}

// Compacted is a *CompactError if the topic is compacted, else nil.
func (s TopicSettings) Compacted(topic string) error {
	if p := s["cleanup.policy"]; strings.Contains(p, "compact") {
		return &CompactError{topic, p}
	}
	return nil
}

// Retention is how long the topic keeps events; false where it isn't told, or
// without end.
func (s TopicSettings) Retention() (time.Duration, bool) {
	kept, err := strconv.ParseInt(s["retention.ms"], 10, 64)
	if err != nil || kept < 0 {
		return 0, false
	}
	const longest = int64(1<<63-1) / int64(time.Millisecond)
	return time.Duration(min(kept, longest)) * time.Millisecond, true
}

// Forgotten is a period whose windows are open for longer than a topic keeps events.
type Forgotten struct {
	Period periods.Period
	Open   time.Duration // the longest window, and its lateness
}

// Forgets are the periods of which the topic drops events while they may still
// count: what it has dropped couldn't be rebuilt from it.
func (s TopicSettings) Forgets(rules *fold.Rules) []Forgotten {
	retention, ok := s.Retention()
	if !ok {
		return nil
	}
	var all []Forgotten
	for _, p := range rules.Periods {
		if open := p.Length() + time.Duration(rules.Lateness)*time.Millisecond; retention < open {
			all = append(all, Forgotten{p, open})
		}
	}
	return all
}

// settings reads a topic's configuration.
func (b *broker) settings(ctx context.Context, topic string) (TopicSettings, error) {
	ctx, cancel := b.call(ctx)
	defer cancel()
	r, err := b.client.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{
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
