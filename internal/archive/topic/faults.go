package topic

// Deletion of a topic, and which of the two topics an error concerns.

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/kafkaconn"
)

// look drops the list of published windows if the topic that records them is missing, or ends earlier than before,
// because it was deleted and created again. Otherwise this process would rely on the old list for as long as it
// leads, and the next leader would find nothing.
func (p *Publisher) look(ctx context.Context) {
	if p.published == nil {
		return
	}
	name := p.Topic + PublishedSuffix
	found, err := kafkaconn.Partitions(ctx, p.Kafka, name)
	end := int64(0)
	if err == nil && found[name] > 0 {
		var logs []kafkaconn.Log
		if logs, err = kafkaconn.AllLogs(ctx, p.Kafka, name, 1); err == nil {
			end = logs[0].End
		}
	}
	if err != nil { // the producer's calls report such errors
		return
	}
	if found[name] == 0 || end < p.end {
		p.Log.Warn("the topic that records which windows are published was deleted: final windows are published again", zap.String("topic", name), zap.Int64("end", end), zap.Int64("end_before", p.end))
		p.published, p.ready = nil, false
		clear(p.known)
	}
	p.end = end
}

func (p *Publisher) explain(ctx context.Context, err error) error {
	if err == nil || p.Explain == nil || errors.Is(err, ErrFenced) || errors.Is(err, ErrTooLong) || errors.Is(err, errStalled) {
		return err
	}
	of := p.Topic
	if e, ok := errors.AsType[*topicError](err); ok {
		of = e.topic
	}
	return p.Explain(ctx, err, of)
}

// topicError is an error of one of the two topics.
type topicError struct {
	topic string
	error
}

func (e *topicError) Unwrap() error { return e.error }
