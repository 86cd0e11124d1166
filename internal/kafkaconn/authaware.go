package kafkaconn

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
)

// authAware is a transport that says if it finds no partition for want of a right. kafka-go's routes by
// what it knows of a topic; once this user may not even see it any more, that is
// nothing, and it says that there is no such partition: which may pass, while a right
// that was taken away doesn't by itself.
type authAware struct{ kafka.RoundTripper }

func (a authAware) RoundTrip(ctx context.Context, addr net.Addr, request kafka.Request) (kafka.Response, error) {
	response, err := a.RoundTripper.RoundTrip(ctx, addr, request)
	topic := ""
	if e, ok := errors.AsType[*protocol.TopicPartitionError](err); ok {
		topic = e.Topic
	} else if e, ok := errors.AsType[*protocol.TopicError](err); ok {
		topic = e.Topic
	}
	if topic == "" {
		return response, err
	}
	// Answered from what the transport knows.
	client := &kafka.Client{Addr: addr, Transport: a.RoundTripper}
	m, problem := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
	if problem != nil {
		return response, err
	}
	for _, t := range m.Topics {
		if errors.Is(t.Error, kafka.TopicAuthorizationFailed) {
			return response, fmt.Errorf("topic %s: %w", topic, t.Error)
		}
	}
	return response, err
}
