package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/internal/retry"
)

// Tail reads the records of a topic's only partition, one response after the other.
type Tail struct {
	fetcher *Fetcher
	records *recordbatch.Reader
	idle    *retry.Backoff
}

// NewTail returns a Tail. maxRecord is the size in bytes of the largest record that is read; 0 means the default.
func NewTail(client *kafka.Client, topic string, maxRecord int64) *Tail {
	return &Tail{
		fetcher: &Fetcher{Transport: client.Transport, Addr: client.Addr, ClientID: kafkaconn.ClientID, Topic: topic},
		records: &recordbatch.Reader{MaxRecord: maxRecord},
		idle:    retry.Policy{First: 10 * time.Millisecond, Longest: DefaultMaxWait}.Start(),
	}
}

// Close takes at most as long as an abandoned call may still take.
func (t *Tail) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), DefaultMaxWait+Grace)
	defer cancel()
	_ = t.fetcher.Drop(ctx)
	t.records.Close()
}

// Next calls take for the records of one response, and returns the offset of the next. After a response without
// records it waits, since a broker replies at once if an open transaction is at the log's end.
func (t *Tail) Next(ctx context.Context, at int64, take func(*recordbatch.Record) error) (next int64, err error) {
	began := time.Now()
	answer, err := t.fetcher.Fetch(ctx, at)
	if err == nil {
		err = answer.Err
	}
	if err != nil {
		return at, fmt.Errorf("fetch %s at %d: %w", t.fetcher.Topic, at, err)
	}
	defer answer.Release()
	if !answer.Answered() { // throttled: the next fetch waits
		return at, nil
	}
	answer.Read(t.records, at)
	for {
		rec, err := t.records.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = take(rec)
		}
		if err != nil {
			return at, fmt.Errorf("read %s at %d: %w", t.fetcher.Topic, t.records.Position(), err)
		}
	}
	if next = t.records.Position(); next > at {
		t.idle.Reset()
	} else if time.Since(began) < DefaultMaxWait/2 {
		return next, t.idle.Next(ctx)
	}
	return next, nil
}
