package topic

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/internal/kafkaconn"
)

// ErrFenced reports that another process has requested the producer id since. This process's transaction is
// aborted.
var ErrFenced = errors.New("another process publishes final windows")

// ErrTooLong reports that a window could not be sent before its transaction would have timed out.
var ErrTooLong = errors.New("its transaction would have taken too long")

// errStalled reports that Kafka has acknowledged nothing for a while.
var errStalled = errors.New("Kafka acknowledges nothing")

const (
	// stallLimit is how long a transaction may continue without an acknowledgement, and how long the request for
	// the producer id may take.
	stallLimit = time.Minute
	// abortLimit is how long an abort may take. If it fails, the next producer aborts the transaction.
	abortLimit = 2 * time.Second
	// buffered is the maximum number of unacknowledged records: some MB.
	buffered = 20_000
)

// timeouts are the transaction timeouts to try; the longest that the broker allows is used
// (transaction.max.timeout.ms, 15 minutes by default). A long timeout delays no one: only these processes write to
// these topics, and the next leader aborts what an earlier one has left. The coordinator keeps state for an open
// transaction, no longer than the broker's operator allows.
var timeouts = []time.Duration{time.Hour, 15 * time.Minute, 5 * time.Minute, time.Minute}

// session is a producer id, and the list of published windows read after it was obtained. The list is complete
// until another process gets the producer id, which ends the session.
type session struct {
	client     *kgo.Client
	timeout    time.Duration // of a transaction
	partitions int           // of the final topic
	published  map[string]published
	end        int64 // of the topic of published windows
}

// open requests the producer id, and only then reads which windows are published.
func (p *Publisher) open(ctx context.Context) (s *session, err error) {
	s = &session{}
	if s.partitions, err = kafkaconn.TopicPartitions(ctx, p.Kafka, p.Topic); err != nil {
		return nil, err
	}
	for _, s.timeout = range p.timeouts {
		if s.client, err = p.producer(ctx, s.timeout); !errors.Is(err, kerr.InvalidTransactionTimeout) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	if s.published, s.end, err = readPublished(ctx, p.Kafka, p.Topic+PublishedSuffix); err != nil {
		s.client.Close()
		return nil, &topicError{p.Topic + PublishedSuffix, err}
	}
	return s, nil
}

func (p *Publisher) producer(ctx context.Context, timeout time.Duration) (*kgo.Client, error) {
	client, err := p.Producer(kgo.TransactionalID(p.TransactionalID), kgo.TransactionTimeout(timeout), kgo.MaxBufferedRecords(buffered))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, stallLimit)
	defer cancel()
	id, _, err := client.ProducerID(ctx)
	if err == nil && id < 0 {
		err = errors.New("transactions take Kafka 0.11 or later (InitProducerId)")
	}
	if err != nil {
		client.Close()
		return nil, fmt.Errorf("request the producer id of the transactional id %s: %w", p.TransactionalID, fenced(err))
	}
	return client, nil
}

// fenced translates a broker's reply to a replaced producer to ErrFenced. A transaction that has timed out gets
// the same reply; a process that is still the leader starts again.
func fenced(err error) error {
	if errors.Is(err, kerr.ProducerFenced) || errors.Is(err, kerr.InvalidProducerEpoch) {
		return fmt.Errorf("%w: %w", ErrFenced, err)
	}
	return err
}

// transaction calls do and commits the records that it sends, if do returns nil and all of them are acknowledged.
// Otherwise it aborts the transaction, and the session is over.
func (s *session) transaction(ctx context.Context, stall time.Duration, do func(ctx context.Context, send func(*kgo.Record)) error) error {
	sending, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// Leave a tenth of the time for the commit.
	long := time.AfterFunc(s.timeout-s.timeout/10, func() { cancel(ErrTooLong) })
	defer long.Stop()
	stalled := time.AfterFunc(stall, func() { cancel(errStalled) })
	defer stalled.Stop()
	if err := s.client.BeginTransaction(); err != nil {
		return fenced(err)
	}
	var once sync.Once
	var failed error
	err := do(sending, func(r *kgo.Record) {
		s.client.Produce(sending, r, func(r *kgo.Record, err error) {
			if err != nil {
				once.Do(func() { failed = &topicError{r.Topic, err}; cancel(failed) })
				return
			}
			stalled.Reset(stall)
		})
	})
	if err == nil {
		err = s.client.Flush(sending) // if this succeeds, all promises have been called
	}
	if err == nil && failed == nil {
		if err = s.client.EndTransaction(sending, kgo.TryCommit); err == nil {
			return nil
		}
	}
	once.Do(func() {}) // from here on errors are caused by the abort, so they are not recorded
	if sending.Err() != nil {
		err = context.Cause(sending)
	} else if failed != nil {
		err = failed
	}
	s.abort(ctx)
	return fenced(err)
}

// abort ends a transaction early for consumers of the topic, which wait for its end. The next producer would abort
// it, too.
func (s *session) abort(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortLimit)
	defer cancel()
	if s.client.AbortBufferedRecords(ctx) == nil {
		_ = s.client.EndTransaction(ctx, kgo.TryAbort) // see above
	}
}
