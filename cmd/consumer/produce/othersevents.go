package produce

// Made-up events count like all others, and are taken off a board one by one, if at all. So
// produce makes none up for a topic that has somebody's.

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/cmd/consumer/clients"
	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/cmd/consumer/scan"
	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/ingest/recordbatch"
	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/sample"
)

const (
	// lookedAt is how many partitions are looked at, and lastOffsets how far back in each:
	// events go to the partition of their key, so that any few are like the others.
	lookedAt    = 32
	lastOffsets = 100
)

// checkOthers is an error where the topic has events that weren't made up by produce, or
// where that can't be found out.
func checkOthers(ctx context.Context, client *kafka.Client, there *config.Kafka, topic string, partitions int) error {
	ctx, cancel := context.WithTimeout(ctx, there.Timeout)
	defer cancel()
	logs, err := kafkaconn.AllLogs(ctx, client, topic, partitions)
	if err != nil {
		return clients.ExplainKafka(ctx, err, there, topic)
	}
	records, looked := int64(0), 0
	for _, log := range logs {
		records += log.End - log.Start
	}
	for p, log := range logs {
		if log.End <= log.Start || looked == lookedAt {
			continue
		}
		looked++
		what, err := othersEvent(ctx, client, topic, p, log)
		switch {
		case errors.Is(err, kafka.TopicAuthorizationFailed):
			what = "whose they are can't be seen: this user has no right to Read the topic"
		case err != nil:
			return clients.ExplainKafka(ctx, err, there, topic)
		}
		if what != "" {
			return fmt.Errorf("the topic %s has %s, and %s: made-up events would count among them on the same boards. "+
				"Use a topic of its own (--topic), or say --%s", topic, units.Plural(records, "record"), what, amongReal)
		}
	}
	return nil
}

// othersEvent names one of a partition's last records that produce didn't make up; it is
// empty where there is none.
func othersEvent(ctx context.Context, client *kafka.Client, topic string, partition int, log kafkaconn.Log) (string, error) {
	seen, what := false, ""
	last := scan.Stretch{Client: client, Topic: topic, Partition: partition, From: max(log.Start, log.End-lastOffsets), End: log.End, MaxRecord: lineBytes}
	err := last.Each(ctx, func(rec *recordbatch.Record) error {
		if seen = true; madeUp(rec) {
			return nil
		}
		what = fmt.Sprintf("that at %s/%d@%d wasn't made up by consumer produce", topic, partition, rec.Offset)
		return errEnough
	})
	if err != nil && !errors.Is(err, errEnough) {
		return "", fmt.Errorf("look at %s/%d: %w", topic, partition, err)
	}
	if !seen { // the end of a transaction, which produce has none of
		return fmt.Sprintf("%s/%d ends with a transaction, which wasn't consumer produce's", topic, partition), nil
	}
	return what, nil
}

var errEnough = errors.New("one is enough")

func madeUp(rec *recordbatch.Record) bool {
	structured := []byte(`{"specversion":"1.0","type":"` + eventType + `","source":"` + eventSource)
	return rec.Oversize == 0 && (bytes.HasPrefix(rec.Value, structured) || sample.Made(rec.Key, rec.Value))
}
