package simulate

// This file answers requests that encode themselves: it is a connection between the transport and the
// brokers, in bytes.

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// versions holds the API versions of the brokers for such requests.
var versions = map[protocol.ApiKey]int16{protocol.Fetch: 11}

// offsetForLeaderEpoch is an API key for which kafka-go has no name.
const offsetForLeaderEpoch = 23

// raw answers a request that encodes itself, such as a fetch or a request for rights. It parks once the
// request is written and the response is read.
func (t *transport) raw(ctx context.Context, c *call, r protocol.RawExchanger) (kafka.Response, error) {
	r.Required(versions)
	return r.RawExchange(&wire{transport: t, ctx: ctx, call: c})
}

// fetch describes the request. The broker holds an empty response for the time that the request specifies.
func (t *transport) fetch(c *call, q *kmsg.FetchRequest) {
	p := q.Topics[0].Partitions[0]
	log := t.w.kafka.partition(q.Topics[0].Topic, p.Partition)
	if log == nil {
		panic("simulate: a fetch from a partition that isn't there")
	}
	c.kind, c.partition, c.offset = "fetch", log.id, p.FetchOffset
	c.what = fmt.Sprintf("fetch partition %s%d at offset %d", otherwise(log.topic), p.Partition, p.FetchOffset)
	wait := time.Duration(q.MaxWaitMillis) * time.Millisecond
	c.ready = func() bool {
		if t.w.kafka.hindrance.muted(c) {
			return false
		}
		if time.Since(c.came) >= wait {
			return true
		}
		end, stable := log.shown()
		return p.FetchOffset < stable || p.FetchOffset < log.start || p.FetchOffset > end
	}
	c.do = func() (any, error) {
		if a, err := t.w.hindered(c, q); a != nil || err != nil {
			return a, err
		}
		return t.w.kafka.fetch(q), nil
	}
	c.fails = func(code kafka.Error, whole bool) any {
		a := kmsg.NewPtrFetchResponse()
		if whole {
			a.ErrorCode = int16(code)
			return a
		}
		failed := kmsg.NewFetchResponseTopicPartition()
		failed.Partition, failed.ErrorCode, failed.HighWatermark, failed.LastStableOffset, failed.LogStartOffset = p.Partition, int16(code), -1, -1, -1
		of := kmsg.NewFetchResponseTopic()
		of.Topic, of.Partitions = q.Topics[0].Topic, []kmsg.FetchResponseTopicPartition{failed}
		a.Topics = append(a.Topics, of)
		return a
	}
}

// header skips a request's length and header, of version 1 or version 2, which has no tags.
func header(b []byte) (key, version int16, correlation int32, body []byte) {
	key, version = int16(binary.BigEndian.Uint16(b[4:])), int16(binary.BigEndian.Uint16(b[6:]))
	correlation = int32(binary.BigEndian.Uint32(b[8:]))
	id := int(int16(binary.BigEndian.Uint16(b[12:])))
	body = b[14+max(id, 0):]
	if r := kmsg.RequestForKey(key); r != nil {
		if r.SetVersion(version); r.IsFlexible() {
			body = body[1:]
		}
	}
	return key, version, correlation, body
}

func readFetch(b []byte) *kmsg.FetchRequest {
	_, version, _, body := header(b)
	q := kmsg.NewPtrFetchRequest()
	q.Version = version
	if err := q.ReadFrom(body); err != nil {
		panic(fmt.Sprintf("simulate: a fetch that can't be read: %v", err))
	}
	return q
}

// wire is a connection: the client writes a request, and the first read parks until there is a response.
type wire struct {
	*transport
	ctx      context.Context //nolint:containedctx // of the one call that it is for
	call     *call
	request  bytes.Buffer
	response *bytes.Reader
}

func (c *wire) Write(b []byte) (int, error) {
	if c.response != nil { // the next request
		c.request.Reset()
		c.response = nil
	}
	return c.request.Write(b)
}

func (c *wire) Read(b []byte) (int, error) {
	if c.response == nil {
		out, err := c.exchange()
		if err != nil {
			return 0, err
		}
		c.response = bytes.NewReader(out[:len(out)-len(out)*c.call.short/shortOf])
	}
	n, err := c.response.Read(b)
	if err != nil && c.call.short > 0 {
		err = errReset
	}
	return n, err
}

// shortOf is the denominator of the part of a response that may be missing.
const shortOf = 10

// exchange parks, and encodes the response.
func (c *wire) exchange() ([]byte, error) {
	key, version, correlation, body := header(c.request.Bytes())
	switch key {
	case int16(protocol.Fetch):
		c.fetch(c.call, readFetch(c.request.Bytes()))
	case int16(protocol.ApiVersions):
		return framed(apiVersions(), version, correlation), nil
	case int16(protocol.Metadata):
		q := kmsg.NewPtrMetadataRequest()
		readRequest(q, version, body)
		c.call.kind, c.call.what = "identity", "ids of topics"
		if q.IncludeTopicAuthorizedOperations {
			c.call.kind, c.call.what = "rights", "rights on topics"
		}
		c.call.do = func() (any, error) { return c.w.kafka.describe(q), nil }
	case offsetForLeaderEpoch:
		q := kmsg.NewPtrOffsetForLeaderEpochRequest()
		readRequest(q, version, body)
		c.call.kind, c.call.what = "epoch", fmt.Sprint("the end of an epoch of partition ", otherwise(q.Topics[0].Topic), q.Topics[0].Partitions[0].Partition)
		c.call.do = func() (any, error) { return c.w.kafka.epochEnd(q), nil }
	default:
		panic(fmt.Sprintf("simulate: raw request %d", key))
	}
	value, err := c.w.park(c.ctx, c.call)
	if err != nil {
		return nil, err
	}
	a, ok := value.(kmsg.Response)
	if !ok {
		panic(fmt.Sprintf("simulate: an answer of type %T", value))
	}
	return framed(a, version, correlation), nil
}

func readRequest(q kmsg.Request, version int16, body []byte) {
	q.SetVersion(version)
	if err := q.ReadFrom(body); err != nil {
		panic(fmt.Sprintf("simulate: a request that can't be read: %v", err))
	}
}

func apiVersions() kmsg.Response {
	a := kmsg.NewPtrApiVersionsResponse()
	for key, newest := range map[int16]int16{int16(protocol.Metadata): 12, offsetForLeaderEpoch: 4} {
		k := kmsg.NewApiVersionsResponseApiKey()
		k.ApiKey, k.MaxVersion = key, newest
		a.ApiKeys = append(a.ApiKeys, k)
	}
	return a
}

// describe answers for every requested topic, with all rights, an id, and the epoch of the leaders.
func (k *brokers) describe(q *kmsg.MetadataRequest) kmsg.Response {
	a := kmsg.NewPtrMetadataResponse()
	for _, t := range q.Topics {
		mt := kmsg.NewMetadataResponseTopic()
		mt.Topic, mt.AuthorizedOperations, mt.TopicID = t.Topic, -1, md5.Sum([]byte(*t.Topic))
		for i := range k.size(*t.Topic) {
			p := kmsg.NewMetadataResponseTopicPartition()
			p.Partition, p.LeaderEpoch = int32(i), k.partition(*t.Topic, int32(i)).epoch()
			mt.Partitions = append(mt.Partitions, p)
		}
		a.Topics = append(a.Topics, mt)
	}
	return a
}

func (k *brokers) epochEnd(q *kmsg.OffsetForLeaderEpochRequest) kmsg.Response {
	asked := q.Topics[0].Partitions[0]
	p := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
	p.Partition, p.LeaderEpoch, p.EndOffset = asked.Partition, asked.LeaderEpoch, -1
	if log := k.partition(q.Topics[0].Topic, asked.Partition); log == nil {
		p.ErrorCode = int16(kafka.UnknownTopicOrPartition)
	} else {
		p.EndOffset = log.endOf(asked.LeaderEpoch)
	}
	t := kmsg.NewOffsetForLeaderEpochResponseTopic()
	t.Topic, t.Partitions = q.Topics[0].Topic, append(t.Partitions, p)
	a := kmsg.NewPtrOffsetForLeaderEpochResponse()
	a.Topics = append(a.Topics, t)
	return a
}
