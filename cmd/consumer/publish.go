package main

// Publishing: records go to the partition of their key, and each partition has a
// lane with one request in flight, so that a member's events stay in order.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"github.com/standings/standings/cmd/consumer/clients"
	"github.com/standings/standings/cmd/consumer/units"
)

const (
	// linger is how long a record waits for company: what Kafka's own producer
	// waits since 4.0.
	linger = 5 * time.Millisecond
	// publishMemory bounds what all lanes hold together.
	publishMemory = 64 * units.MiB
	// publishPatience is how long a batch is tried before the run is given up.
	publishPatience = time.Minute
	// worthTelling is the failed attempt of a batch from which on it is told: a
	// leader that moves costs one or two.
	worthTelling = 4
)

// errGaveUp says that nothing more is taken, for a reason that close returns.
var errGaveUp = errors.New("publishing has failed")

// publisher sends records to a topic, acknowledged by all in-sync replicas. add
// is for one goroutine.
type publisher struct {
	client      *kafka.Client
	topic       string
	compression kafka.Compression
	headers     []kafka.Header // of every record
	patience    time.Duration
	say         func(string) // told of each failed attempt

	lanes    []*lane
	ids      []int // of the lanes, for the balancer
	balancer kafka.Murmur2Balancer
	limit    int // bytes a batch
	more     int // bytes a record beside key and value
	turn     int // of the next record without a key

	group  *errgroup.Group
	failed <-chan struct{} // closed when a lane gives up
	closed chan struct{}

	events  atomic.Int64 // acknowledged
	bytes   atomic.Int64 // of their keys and values
	resends atomic.Int64 // events of attempts that failed but may have been written
}

// lane is the way to one partition: add fills one batch while the sender has the
// other. The channels have room for one signal each.
type lane struct {
	partition int
	mu        sync.Mutex
	filling   *batch
	some      chan struct{} // the batch has a first record
	full      chan struct{} // it has no room
	room      chan struct{} // it is another, empty one
}

// start makes the lanes. ctx ends the sending at once, acknowledged or not.
func (p *publisher) start(ctx context.Context, partitions int) {
	p.balancer.Consistent = true
	p.limit = min(batchBytes, max(publishMemory/2/partitions, 16*units.KiB))
	p.more = recordOverhead
	for _, h := range p.headers {
		p.more += len(h.Key) + len(h.Value) + 2*lengthBytes
	}
	p.closed = make(chan struct{})
	p.group, ctx = errgroup.WithContext(ctx)
	p.failed = ctx.Done()
	for id := range partitions {
		l := &lane{partition: id, filling: &batch{},
			some: make(chan struct{}, 1), full: make(chan struct{}, 1), room: make(chan struct{}, 1)}
		p.lanes, p.ids = append(p.lanes, l), append(p.ids, id)
		p.group.Go(func() error { return p.send(ctx, l) })
	}
}

// add copies a record into its lane, and waits where that is full. A nil key is
// no key. It returns an error only when the record wasn't taken.
func (p *publisher) add(ctx context.Context, o outgoing) error {
	l := p.lanes[p.lane(o.key)]
	for {
		l.mu.Lock()
		if l.filling.fits(o.size(), p.more, p.limit) {
			l.filling.add(o)
			if len(l.filling.ends) == 1 {
				notify(l.some)
			}
			l.mu.Unlock()
			return nil
		}
		notify(l.full)
		l.mu.Unlock()
		select {
		case <-l.room:
		case <-p.failed:
			return errGaveUp
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// lane is where a key goes: as Kafka's own producer has it, so that a member's
// events meet in one partition whoever publishes them.
func (p *publisher) lane(key []byte) int {
	if key == nil {
		p.turn++
		return p.turn % len(p.lanes)
	}
	return p.balancer.Balance(kafka.Message{Key: key}, p.ids...)
}

// close sends what is left and returns once all is acknowledged, or why it isn't.
func (p *publisher) close() error {
	close(p.closed)
	return p.group.Wait()
}

// send is a lane's other end.
func (p *publisher) send(ctx context.Context, l *lane) error {
	spare := &batch{}
	timer := time.NewTimer(linger)
	timer.Stop()
	for {
		select {
		case <-l.some:
			timer.Reset(linger)
			select {
			case <-l.full:
			case <-timer.C:
			case <-p.closed:
			case <-ctx.Done():
				return ctx.Err()
			}
			timer.Stop()
		case <-p.closed:
		case <-ctx.Done():
			return ctx.Err()
		}
		l.mu.Lock()
		b := l.filling
		l.filling = spare
		drain(l.full) // it was about b
		notify(l.room)
		l.mu.Unlock()
		if len(b.ends) == 0 {
			return nil // closed, and nothing left
		}
		reusable, err := p.deliver(ctx, l.partition, b, 0, len(b.ends))
		if err != nil {
			return err
		}
		spare = &batch{}
		if reusable {
			b.reset()
			spare = b
		}
	}
}

// deliver sends records [from, to) of a batch until they are acknowledged. The
// batch isn't reusable after an attempt that was abandoned: kafka-go may still
// be reading it.
func (p *publisher) deliver(ctx context.Context, partition int, b *batch, from, to int) (reusable bool, err error) {
	policy := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(50*time.Millisecond),
		backoff.WithMaxInterval(2*time.Second),
		backoff.WithMaxElapsedTime(p.patience),
	)
	reusable = true
	attempt := func() error {
		err := p.produce(ctx, partition, b, from, to)
		if err == nil {
			return nil
		}
		if _, answered := errors.AsType[kafka.Error](err); !answered {
			reusable = false
		}
		if mayBeWritten(err) {
			p.resends.Add(int64(to - from))
		}
		if !sendAgain(err) {
			return backoff.Permanent(err)
		}
		return err
	}
	attempts := 0
	told := func(err error, wait time.Duration) {
		if attempts++; attempts < worthTelling {
			return
		}
		p.say(fmt.Sprintf("partition %d: %v; again in %s", partition, err, wait.Round(time.Millisecond)))
	}
	err = backoff.RetryNotify(attempt, backoff.WithContext(policy, ctx), told)
	switch {
	case err == nil:
		return reusable, nil
	case errors.Is(err, kafka.MessageSizeTooLarge) && to-from > 1:
		middle := from + (to-from)/2
		first, err := p.deliver(ctx, partition, b, from, middle)
		if err != nil {
			return false, err
		}
		second, err := p.deliver(ctx, partition, b, middle, to)
		return reusable && first && second, err
	case errors.Is(err, kafka.MessageSizeTooLarge):
		return false, &clients.KafkaError{Line: fmt.Sprintf("an event of %d bytes is more than topic %s takes (its max.message.bytes)",
			b.volume(from, to), p.topic), Err: err}
	}
	return false, fmt.Errorf("publish to %s/%d: %w", p.topic, partition, err)
}

// produce is one attempt.
func (p *publisher) produce(ctx context.Context, partition int, b *batch, from, to int) error {
	response, err := p.client.Produce(ctx, &kafka.ProduceRequest{
		Topic: p.topic, Partition: partition, RequiredAcks: kafka.RequireAll,
		Compression: p.compression, Records: b.records(from, to, p.headers),
	})
	if err != nil {
		return err
	}
	if response.Error != nil {
		for i, why := range response.RecordErrors {
			return fmt.Errorf("record %d of %d: %w: %w", i+1, to-from, response.Error, why)
		}
		return response.Error
	}
	p.events.Add(int64(to - from))
	p.bytes.Add(int64(b.volume(from, to)))
	return nil
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func drain(c chan struct{}) {
	select {
	case <-c:
	default:
	}
}

// sendAgain reports whether a failed produce call may succeed later. The table is
// our own: kafka-go's Temporary leaves out codes that pass by themselves.
func sendAgain(err error) bool {
	code, ok := errors.AsType[kafka.Error](err)
	if !ok {
		return true // the network, a deadline, no leader known yet
	}
	switch code {
	case kafka.UnknownTopicOrPartition, kafka.LeaderNotAvailable, kafka.NotLeaderForPartition, kafka.RequestTimedOut,
		kafka.BrokerNotAvailable, kafka.ReplicaNotAvailable, kafka.NetworkException, kafka.NotEnoughReplicas,
		kafka.NotEnoughReplicasAfterAppend, kafka.KafkaStorageError, kafka.FencedLeaderEpoch, kafka.UnknownLeaderEpoch:
		return true
	}
	return false
}

// mayBeWritten reports whether the records of a failed call can be in the log all
// the same: sending them again puts them there twice.
func mayBeWritten(err error) bool {
	if code, ok := errors.AsType[kafka.Error](err); ok {
		return code == kafka.RequestTimedOut || code == kafka.NotEnoughReplicasAfterAppend || code == kafka.NetworkException
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Op != "dial"
	}
	return true
}
