package produce

// This file handles the results of records.

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/internal/app"
)

// recordEnded handles the result of a record.
func (p *Publisher) recordEnded(r *kgo.Record, err error) {
	switch answer, answered := errors.AsType[*kerr.Error](err); {
	case err == nil:
		p.events.Add(1)
		p.bytes.Add(int64(len(r.Key) + len(r.Value)))
		p.lanes[r.Partition].acknowledged.Add(1)
	case answered:
		// An earlier attempt that got no response may have been written nevertheless.
		if !p.trouble.again.Load() && !lost(answer) {
			p.refused.Add(1)
		}
		p.giveUp(p.failure(r, err))
	case !errors.Is(err, kgo.ErrClientClosed): // close explains that error
		p.giveUp(p.failure(r, err))
	}
	size := memoryOf(r)
	const few = publishMemory * 3 / 4
	if left := p.held.Add(-size); left <= few && left+size > few {
		select {
		case p.room <- struct{}{}:
		default:
		}
	}
}

// lost reports whether the log differs from the producer's state, so that it is unknown whether the record
// was written.
func lost(answer *kerr.Error) bool {
	return answer == kerr.OutOfOrderSequenceNumber || answer == kerr.UnknownProducerID ||
		answer == kerr.InvalidProducerEpoch || answer == kerr.InvalidProducerIDMapping
}

// failure returns the error for a record that was not published.
func (p *Publisher) failure(r *kgo.Record, err error) error {
	if !errors.Is(err, kerr.MessageTooLarge) {
		return fmt.Errorf("publish to %s/%d: %w", p.topic, r.Partition, err)
	}
	line := fmt.Sprintf("an event of %d bytes is more than topic %s takes (its max.message.bytes)", len(r.Key)+len(r.Value), p.topic)
	switch {
	case p.limit == 0:
		line = fmt.Sprintf("an event or batch exceeds the limit of topic %s, or %d bytes; its max.message.bytes is unknown, "+
			"as this user has no right to DescribeConfigs the topic; with it, batches are made to fit", p.topic, largestBatch)
	case memoryOf(r) < int64(p.limit):
		line = fmt.Sprintf("a batch of events is more than topic %s takes by now: its max.message.bytes was %d at the start", p.topic, p.limit)
	}
	return &app.KafkaError{Line: line, Err: err}
}

func (p *Publisher) giveUp(err error) {
	p.once.Do(func() {
		p.err = err
		close(p.failed)
	})
}

// unsure returns the number of events that were handed over but may or may not be in the log. It is for the
// caller of close.
func (p *Publisher) unsure() int64 { return p.taken - p.events.Load() - p.refused.Load() }
