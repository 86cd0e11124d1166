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

// ErrFenced says that another process has requested the producer id since, and whatever this one had begun is
// aborted.
var ErrFenced = errors.New("another process publishes final windows")

// ErrTooLong says that a window wasn't through before its transaction would have timed out.
var ErrTooLong = errors.New("its transaction would have taken too long")

// errStalled: Kafka hasn't acknowledged anything for a while.
var errStalled = errors.New("Kafka acknowledges nothing")

const (
	// stallLimit is for how long nothing may be acknowledged within a transaction, and how long the
	// producer id may take.
	stallLimit = time.Minute
	// abortLimit is how long an abort may take: whoever comes next aborts what is left.
	abortLimit = 2 * time.Second
	// buffered is how many records wait to be acknowledged: some MB.
	buffered = 20_000
)

// timeouts are how long a transaction may last, the longest that the broker allows being taken
// (transaction.max.timeout.ms, 15 minutes by default). A long one holds nobody up: nobody else
// writes to these topics, and the next leader aborts what an earlier one has left. It has to be known
// to the coordinator for as long as it is open, and no longer than the broker's operator wants.
var timeouts = []time.Duration{time.Hour, 15 * time.Minute, 5 * time.Minute, time.Minute}

// session is a producer id, and what is published as of then: all that is, for as long as nobody else
// gets that id, which ends it.
type session struct {
	client     *kgo.Client
	timeout    time.Duration // of a transaction
	partitions int           // of the final topic
	published  map[string]published
	end        int64 // of the topic that has that
}

// open requests the producer id, and only then looks what is published.
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

// fenced makes of what a broker answers to a producer that was replaced an ErrFenced. A transaction
// that has timed out is answered likewise: whoever leads still, begins anew.
func fenced(err error) error {
	if errors.Is(err, kerr.ProducerFenced) || errors.Is(err, kerr.InvalidProducerEpoch) {
		return fmt.Errorf("%w: %w", ErrFenced, err)
	}
	return err
}

// transaction calls do, and commits what it has sent if it returns nil and all of it is acknowledged;
// else that is aborted, and the session is over.
func (s *session) transaction(ctx context.Context, stall time.Duration, do func(ctx context.Context, send func(*kgo.Record)) error) error {
	sending, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// A tenth is left for the commit.
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
		err = s.client.Flush(sending) // all promises have been called if there is no error
	}
	if err == nil && failed == nil {
		if err = s.client.EndTransaction(sending, kgo.TryCommit); err == nil {
			return nil
		}
	}
	once.Do(func() {}) // what failed before is known from here on; what fails by the abort is no cause
	if sending.Err() != nil {
		err = context.Cause(sending)
	} else if failed != nil {
		err = failed
	}
	s.abort(ctx)
	return fenced(err)
}

// abort ends a transaction early for whoever reads the topic: the next producer would do it, too.
func (s *session) abort(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortLimit)
	defer cancel()
	if s.client.AbortBufferedRecords(ctx) == nil {
		_ = s.client.EndTransaction(ctx, kgo.TryAbort) // see above
	}
}
