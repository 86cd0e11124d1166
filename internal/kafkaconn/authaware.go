package kafkaconn

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
)

// authAware is a transport that reports a missing right as the reason that a partition is not found.
// kafka-go's transport routes by its metadata. If the user may no longer describe a topic, the metadata has
// no partitions of it, and kafka-go reports that the partition does not exist. That error is transient, but
// a revoked right is not.
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
	// The transport answers this from its cache.
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
