package kafkaconn

// Requests for which kafka-go has no message, or only versions that are too old. kmsg encodes them;
// kafka-go's transport finds the broker, connects and authenticates.

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// errUnsupported reports that a broker does not support a request, or no version that is new enough.
var errUnsupported = errors.New("the broker does not support this request")

// rawRequest is one request to any broker. Its fields belong to the connection until the call is answered;
// after an abandoned call the connection keeps them.
type rawRequest struct {
	kmsg.Request
	oldest, newest int16 // the usable versions
	response       kmsg.Response
}

// leaderRequest is a rawRequest to the leader of a partition.
type leaderRequest struct {
	*rawRequest
	topic     string
	partition int32
}

// maxRawResponse limits the memory for a response, in bytes.
const maxRawResponse = 64 << 20

// roundTrip sends a request, and returns when the request has its response.
func roundTrip(ctx context.Context, client *kafka.Client, request protocol.Message) error {
	ctx, cancel := context.WithTimeout(ctx, client.Timeout)
	defer cancel()
	_, err := client.Transport.RoundTrip(ctx, client.Addr, request)
	return err
}

// ApiKey returns the request's number in Kafka's protocol.
func (r *rawRequest) ApiKey() protocol.ApiKey { return protocol.ApiKey(r.Key()) } //nolint:staticcheck // kafka-go's name

// Required returns true: this type implements the exchange.
func (r *rawRequest) Required(map[protocol.ApiKey]int16) bool { return true }

// RawExchange requests the broker's versions, since the transport knows only those that kafka-go can
// encode, and then sends the request. An error closes the connection.
func (r *rawRequest) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	versions := kmsg.NewPtrApiVersionsRequest()
	reply, err := exchange(rw, versions)
	if err != nil {
		return nil, fmt.Errorf("ask for the broker's versions: %w", err)
	}
	for _, k := range reply.(*kmsg.ApiVersionsResponse).ApiKeys {
		if k.ApiKey != r.Key() {
			continue
		}
		version := min(k.MaxVersion, r.newest)
		if version < max(k.MinVersion, r.oldest) {
			break
		}
		r.SetVersion(version)
		if r.response, err = exchange(rw, r.Request); err != nil {
			return nil, fmt.Errorf("%s: %w", kmsg.NameForKey(r.Key()), err)
		}
		return r, nil
	}
	return r, nil // without a response: the connection stays usable
}

// answer returns the response, or errUnsupported.
func (r *rawRequest) answer() (kmsg.Response, error) {
	if r.response == nil {
		return nil, fmt.Errorf("%s: %w", kmsg.NameForKey(r.Key()), errUnsupported)
	}
	return r.response, nil
}

// describeTopics requests the description of topics from a broker, since the transport's cache has only a
// part of it. Brokers report rights from version 8 of the request on, and ids from version 10 on. Before
// version 4 a broker might create the topics.
func describeTopics(ctx context.Context, client *kafka.Client, oldest int16, rights bool, topics []string) (*kmsg.MetadataResponse, error) {
	request := kmsg.NewPtrMetadataRequest()
	for _, name := range topics {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		request.Topics = append(request.Topics, t)
	}
	request.IncludeTopicAuthorizedOperations = rights
	r := &rawRequest{Request: request, oldest: oldest, newest: 12}
	if err := roundTrip(ctx, client, r); err != nil {
		return nil, err
	}
	reply, err := r.answer()
	if err != nil {
		return nil, err
	}
	return reply.(*kmsg.MetadataResponse), nil
}

// Broker returns the partition's leader.
func (r *leaderRequest) Broker(cluster protocol.Cluster) (protocol.Broker, error) {
	none := protocol.Broker{ID: -1}
	topic, ok := cluster.Topics[r.topic]
	if !ok {
		return none, protocol.NewErrNoTopic(r.topic)
	}
	partition, ok := topic.Partitions[r.partition]
	if !ok {
		return none, protocol.NewErrNoPartition(r.topic, r.partition)
	}
	leader, ok := cluster.Brokers[partition.Leader]
	if !ok {
		return none, protocol.NewErrNoLeader(r.topic, r.partition)
	}
	return leader, nil
}

// exchange writes a request and reads its response. KIP-482 defines the formats of both headers.
func exchange(rw io.ReadWriter, request kmsg.Request) (kmsg.Response, error) {
	correlation := correlations.Add(1)
	formatter := kmsg.NewRequestFormatter(kmsg.FormatterClientID(ClientID))
	if _, err := rw.Write(formatter.AppendRequest(nil, request, correlation)); err != nil {
		return nil, fmt.Errorf("write the request: %w", err)
	}
	var length [4]byte
	if _, err := io.ReadFull(rw, length[:]); err != nil {
		return nil, fmt.Errorf("read the response's length: %w", err)
	}
	size := binary.BigEndian.Uint32(length[:])
	if size < 4 || size > maxRawResponse {
		return nil, fmt.Errorf("malformed response: its length is %d bytes", size)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(rw, body); err != nil {
		return nil, fmt.Errorf("read a response of %d bytes: %w", size, err)
	}
	if got := int32(binary.BigEndian.Uint32(body)); got != correlation {
		return nil, fmt.Errorf("malformed response: it answers request %d, not %d", got, correlation)
	}
	body = body[4:]
	response := request.ResponseKind()
	if response.IsFlexible() && request.Key() != int16(protocol.ApiVersions) {
		var err error
		if body, err = skipTags(body); err != nil {
			return nil, err
		}
	}
	if err := response.ReadFrom(body); err != nil {
		return nil, fmt.Errorf("malformed response: %w", err)
	}
	return response, nil
}

// skipTags skips a header's tagged fields, none of which is defined yet.
func skipTags(b []byte) ([]byte, error) {
	number := func() (uint64, bool) {
		v, n := binary.Uvarint(b)
		b = b[max(n, 0):]
		return v, n > 0
	}
	count, ok := number()
	for ; ok && count > 0; count-- {
		var size uint64
		if _, ok = number(); !ok {
			break
		}
		if size, ok = number(); ok && size <= uint64(len(b)) {
			b = b[size:]
		} else {
			ok = false
		}
	}
	if !ok {
		return nil, errors.New("malformed response: its header's tagged fields are cut off")
	}
	return b, nil
}
