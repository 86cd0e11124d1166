package bans

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/retry"
)

// tries is the retry policy of a command: some seconds, until the client's timeout.
var tries = retry.Policy{First: 50 * time.Millisecond, Longest: time.Second}

// ErrErased reports that a member is erased. An erasure is permanent.
var ErrErased = errors.New("the member is erased, which is for good: nothing of theirs was kept that could be shown")

// Publisher writes the topic, acknowledged by all in-sync replicas, and reads back what it wrote. Its follower
// must be running.
type Publisher struct{ Follower *Follower }

// Put publishes a ban, and returns once the follower has read it back. The error is ErrErased if the member is
// erased.
func (p *Publisher) Put(ctx context.Context, r *Record) error {
	key, value, err := r.Encode()
	if err != nil {
		return err
	}
	return p.write(ctx, r.Key, key, value, r.Erased)
}

// Remove publishes a tombstone for a ban. If there is no ban, it writes nothing and returns false.
func (p *Publisher) Remove(ctx context.Context, k Key) (bool, error) {
	if err := p.Follower.Ready(ctx, 0); err != nil {
		return false, err
	}
	if p.Follower.State()[k] == nil {
		return false, nil
	}
	return true, p.write(ctx, k, []byte(k.Text()), nil, false)
}

func (p *Publisher) write(ctx context.Context, k Key, key, value []byte, erases bool) error {
	if err := p.Follower.Ready(ctx, 0); err != nil {
		return err
	}
	if r := p.Follower.State()[k]; r != nil && r.Erased && !erases {
		return ErrErased
	}
	offset, err := p.produce(ctx, key, value)
	if err != nil {
		return err
	}
	if err := p.Follower.Ready(ctx, offset+1); err != nil {
		return fmt.Errorf("it was written at offset %d, and reading it back failed: %w", offset, err)
	}
	// Another writer may have erased the member between the check above and this record. The record, which is
	// later, then replaces the erasure, so the erasure is written again after it.
	erased := p.Follower.erasure(k)
	if erased == nil || erases {
		return nil
	}
	if key, value, err = erased.Encode(); err == nil {
		_, err = p.produce(ctx, key, value)
	}
	return errors.Join(ErrErased, err)
}

func (p *Publisher) produce(ctx context.Context, key, value []byte) (offset int64, err error) {
	f := p.Follower
	ctx, cancel := context.WithTimeout(ctx, f.Client.Timeout)
	defer cancel()
	var last error
	err = tries.Do(ctx, func(err error) bool { return kafkaconn.Classify(err) == ledger.Retry }, func() error {
		offset, last = p.once(ctx, key, value)
		return last
	})
	if errors.Is(err, context.DeadlineExceeded) && last != nil {
		err = last // it is more specific
	}
	if err != nil {
		return 0, fmt.Errorf("write to the bans topic %s: %w", f.Topic, err)
	}
	return offset, nil
}

func (p *Publisher) once(ctx context.Context, key, value []byte) (int64, error) {
	f := p.Follower
	record := kafka.Record{Key: kafka.NewBytes(key)}
	if value != nil {
		record.Value = kafka.NewBytes(value)
	}
	r, err := f.Client.Produce(ctx, &kafka.ProduceRequest{Topic: f.Topic, Partition: 0, RequiredAcks: kafka.RequireAll, Records: kafka.NewRecordReader(record)})
	if err == nil {
		err = r.Error
	}
	if err == nil {
		for _, e := range r.RecordErrors {
			err = errors.Join(err, e)
		}
	}
	if err != nil {
		return 0, err
	}
	return r.BaseOffset, nil
}
