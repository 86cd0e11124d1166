package topics

import (
	"fmt"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/periods"
)

// This file lists a consumer's requirements on its topics: rights, and settings that keep events until they
// count.

// Needs returns the rights that a consumer of these topics uses, as docs/security.md lists them.
func Needs(group string, topics ...string) []kafkaconn.Right {
	all := []kafkaconn.Right{{Operation: kafka.ACLOperationTypeRead, Group: group, For: "to share the partitions and commit"}}
	for _, t := range topics {
		dead := event.DeadLetterTopic(t)
		all = append(all,
			kafkaconn.Right{Operation: kafka.ACLOperationTypeRead, Topic: t, For: "to read events"},
			kafkaconn.Right{Operation: kafka.ACLOperationTypeWrite, Topic: dead, For: "to write dead letters"},
			kafkaconn.Right{Operation: kafka.ACLOperationTypeDescribeConfigs, Topic: t, For: "to check its cleanup policy and retention", Optional: true},
			kafkaconn.Right{Operation: kafka.ACLOperationTypeAlter, Topic: dead, For: "to add partitions when its source grows", Optional: true},
		)
	}
	return all
}

// CompactError reports that a topic deletes events when their key is written again.
type CompactError struct{ Topic, Policy string }

func (e *CompactError) Error() string {
	return fmt.Sprintf("topic %s has cleanup.policy=%s: events with equal keys would vanish before they are counted or counted again; "+
		"set cleanup.policy=delete", e.Topic, e.Policy)
}

// CheckCompaction returns a *CompactError if the topic is compacted.
func CheckCompaction(topic string, settings kafkaconn.TopicSettings) error {
	if p := settings["cleanup.policy"]; strings.Contains(p, "compact") {
		return &CompactError{topic, p}
	}
	return nil
}

// Forgotten is a period whose windows stay open for longer than a topic keeps events.
type Forgotten struct {
	Period periods.Period
	Open   time.Duration // length of the longest window plus its lateness
}

// Forgets returns the periods for which the topic deletes events that may still count. Kafka could not rebuild
// the deleted events.
func Forgets(settings kafkaconn.TopicSettings, rules *fold.Rules) []Forgotten {
	retention, ok := settings.Retention()
	if !ok {
		return nil
	}
	var all []Forgotten
	for i := range rules.Periods {
		p := &rules.Periods[i]
		if open := p.Rule.Length() + time.Duration(p.Lateness)*time.Millisecond; retention < open {
			all = append(all, Forgotten{p.Rule.Name(), open})
		}
	}
	return all
}
