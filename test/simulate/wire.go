package simulate

// The requests that write themselves: a connection between the transport and the brokers, in bytes.

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// What the brokers speak, of what is asked for in bytes.
var versions = map[protocol.ApiKey]int16{protocol.Fetch: 11, protocol.Metadata: 8}

// raw answers a request that writes itself: a fetch, or the question for rights. It
// parks once it is written, and its answer is read.
func (t *transport) raw(ctx context.Context, c *call, r protocol.RawExchanger) (kafka.Response, error) {
	r.Required(versions)
	return r.RawExchange(&wire{transport: t, ctx: ctx, call: c})
}

// fetch says what is asked for. An empty answer is held back by the broker for the
// time that the request says.
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

// header skips a request's length and header: version 1 of it, without tags.
func header(b []byte) (key, version int16, correlation int32, body []byte) {
	key, version = int16(binary.BigEndian.Uint16(b[4:])), int16(binary.BigEndian.Uint16(b[6:]))
	correlation = int32(binary.BigEndian.Uint32(b[8:]))
	id := int(int16(binary.BigEndian.Uint16(b[12:])))
	return key, version, correlation, b[14+max(id, 0):]
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

// wire is a connection: what is written is a request, and the first read parks until
// there is an answer.
type wire struct {
	*transport
	ctx      context.Context //nolint:containedctx // of the one call that it is for
	call     *call
	request  bytes.Buffer
	response *bytes.Reader
}

func (c *wire) Write(b []byte) (int, error) { return c.request.Write(b) }

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

// shortOf is what part of an answer may be missing.
const shortOf = 10

// exchange parks, and writes the answer out.
func (c *wire) exchange() ([]byte, error) {
	key, version, correlation, body := header(c.request.Bytes())
	switch key {
	case int16(protocol.Fetch):
		c.fetch(c.call, readFetch(c.request.Bytes()))
	case int16(protocol.Metadata):
		c.call.kind, c.call.what = "rights", "rights on topics"
		c.call.do = func() (any, error) { return rights(version, body), nil }
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

// rights are all, on every topic that is asked about.
func rights(version int16, body []byte) kmsg.Response {
	q, a := kmsg.NewPtrMetadataRequest(), kmsg.NewPtrMetadataResponse()
	q.Version = version
	if err := q.ReadFrom(body); err != nil {
		panic(fmt.Sprintf("simulate: a metadata request that can't be read: %v", err))
	}
	for _, t := range q.Topics {
		mt := kmsg.NewMetadataResponseTopic()
		mt.Topic, mt.AuthorizedOperations = t.Topic, -1
		a.Topics = append(a.Topics, mt)
	}
	return a
}
