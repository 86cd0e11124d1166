package main

// Made-up events count like all others, and are taken off a board one by one, if at all. So
// produce makes none up for a topic that has somebody's.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/cmd/consumer/clients"
	"github.com/standings/standings/cmd/consumer/config"
	"github.com/standings/standings/cmd/consumer/units"
	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ingest/connect"
	"github.com/standings/standings/internal/ingest/fetch"
	"github.com/standings/standings/internal/ingest/recordbatch"
	"github.com/standings/standings/internal/sample"
)

const (
	amongReal = "among-real-events"
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
	logs, err := ingest.Logs(ctx, client, topic, partitions)
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
func othersEvent(ctx context.Context, client *kafka.Client, topic string, partition int, log ingest.Log) (string, error) {
	f := &fetch.Fetcher{Transport: client.Transport, Addr: client.Addr, ClientID: connect.ClientID, Topic: topic, Partition: partition}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetch.DefaultMaxWait+fetch.Grace)
		defer cancel()
		_ = f.Drop(ctx)
	}()
	records := &recordbatch.Reader{MaxRecord: lineBytes}
	defer records.Close()
	seen := false
	for at := max(log.Start, log.End-lastOffsets); at < log.End; {
		answer, err := f.Fetch(ctx, at)
		if err == nil {
			err = answer.Err
		}
		if err != nil {
			return "", fmt.Errorf("look at %s/%d: %w", topic, partition, err)
		}
		before := at
		records.Reset(answer.Records, at, answer.Aborted)
		for {
			rec, err := records.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				answer.Release()
				return "", fmt.Errorf("look at %s/%d: %w", topic, partition, err)
			}
			seen = true
			if !madeUp(rec) {
				offset := rec.Offset
				answer.Release()
				return fmt.Sprintf("that at %s/%d@%d wasn't made up by consumer produce", topic, partition, offset), nil
			}
		}
		at = max(at, records.Position())
		answer.Release()
		if at == before { // a quota, or a leader that has just moved
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
				return "", fmt.Errorf("look at %s/%d: %w", topic, partition, ctx.Err())
			}
		}
	}
	if !seen { // the end of a transaction, which produce has none of
		return fmt.Sprintf("%s/%d ends with a transaction, which wasn't consumer produce's", topic, partition), nil
	}
	return "", nil
}

func madeUp(rec *recordbatch.Record) bool {
	structured := []byte(`{"specversion":"1.0","type":"` + eventType + `","source":"` + eventSource)
	return rec.Oversize == 0 && (bytes.HasPrefix(rec.Value, structured) || sample.Made(rec.Key, rec.Value))
}
