package fetch

// One request and its response on a connection, and the ownership of its buffer.
//
// RawExchange runs on the connection's goroutine. When a call's context ends, RoundTrip returns at once,
// while the connection continues to read into the buffer until the response is complete or the deadline,
// which both share, has passed. The order of events:
//
//	call                         connection
//	RoundTrip                    RawExchange: running
//	context ends                 reading into the buffer
//	endCall: abandoned
//	next call, new exchange      still reading into the old buffer
//	                             finish: releases the buffer and its memory
//
// So a buffer is never reused while a connection may write to it, and its memory counts until then. A call
// can also end before RawExchange starts: endCall then marks the exchange, and RawExchange returns before
// it touches anything.

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/fetch"

	"github.com/standings/standings/internal/kafkaconn"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
)

const (
	// inline is the size, in bytes, of the buffer that every Fetcher has without a reservation. An empty
	// response fits, so a partition without traffic can be polled without memory.
	inline = 512
	// small is the smallest reservation, in bytes, for a partition with little traffic. Buffers of this
	// size come from a pool, and are reserved while in use.
	small = 8 << 10
	// discarded is the size, in bytes, of the largest response that is read and discarded if there is no
	// memory for it. For a larger one a new connection costs less.
	discarded = 8 << 20
	// uncounted is the number of aborted transactions for which no memory is reserved.
	uncounted = 64

	oldest = 4  // the first version with transactions
	newest = 11 // the latest version that kafka-go writes

	readCommitted = 1
)

type stage int

const (
	unstarted stage = iota
	running
	ended
)

var (
	errGivenUp = errors.New("the call was given up before it was sent")
	errMuted   = errors.New("the broker reads nothing from this connection for a while") // closes the connection
)

type exchange struct {
	fetch.Request // with ApiKey and Broker, by which the Transport routes
	topics        [1]fetch.RequestTopic
	partitions    [1]fetch.RequestPartition

	clientID    string
	correlation int32
	maxBatch    int64 // bytes
	memory      recordbatch.Memory
	version     int16

	mu      sync.Mutex // guards stage, givenUp, large and version: a call may be abandoned while it runs
	stage   stage
	givenUp bool
	large   int64         // bytes of the response, once its length is known
	over    chan struct{} // closed when an abandoned exchange ends

	// The fields below belong to the connection while RawExchange runs, and then to the caller.
	head     [4]byte
	inline   [inline]byte
	buf      []byte // inline, or a reserved buffer
	size     int    // bytes of the response in buf
	aborted  []recordbatch.Aborted
	charged  int64 // bytes reserved for buf and aborted
	refused  error // Memory refused: the response was discarded
	response Response
}

func newExchange() *exchange { return &exchange{over: make(chan struct{})} }

// prepare writes the request of the next call.
func (x *exchange) prepare(f *Fetcher, offset int64) {
	x.partitions[0] = fetch.RequestPartition{
		Partition: int32(f.Partition), CurrentLeaderEpoch: -1, FetchOffset: offset,
		LogStartOffset: -1, PartitionMaxBytes: f.maxBytes(),
	}
	x.topics[0] = fetch.RequestTopic{Topic: f.Topic, Partitions: x.partitions[:]}
	x.Request = fetch.Request{
		ReplicaID: -1, MaxWaitTime: int32(f.maxWait().Milliseconds()), MinBytes: 1, MaxBytes: f.maxBytes(),
		IsolationLevel: readCommitted, SessionEpoch: -1, Topics: x.topics[:],
	}
	x.clientID, x.correlation, x.maxBatch, x.memory = f.ClientID, f.correlation, f.maxBatch(), f.Memory
	x.refused, x.response, x.stage, x.large = nil, Response{}, unstarted, 0
}

// Required returns true, and stores the connection's version.
func (x *exchange) Required(versions map[protocol.ApiKey]int16) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.version = versions[protocol.Fetch]
	return true
}

// RawExchange writes the request and reads the response. An error closes the connection.
func (x *exchange) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	if !x.begin() {
		return nil, errGivenUp
	}
	defer x.finish()
	if x.version < oldest {
		return nil, fmt.Errorf("%w: it offers version %d, and %d is needed (Kafka 0.11)", ErrVersion, x.version, oldest)
	}
	version := min(x.version, newest)
	if err := protocol.WriteRequest(rw, version, x.correlation, x.clientID, &x.Request); err != nil {
		return nil, fmt.Errorf("write the request: %w", err)
	}
	if _, err := io.ReadFull(rw, x.head[:]); err != nil {
		return nil, fmt.Errorf("read the response's length: %w", err)
	}
	size := int64(int32(binary.BigEndian.Uint32(x.head[:])))
	x.expect(size)
	held := min(size, x.maxBatch+Beside)
	switch {
	case size < 4:
		return nil, fmt.Errorf("%w: a length of %d bytes", ErrMalformed, size)
	case !x.room(int(held)):
		x.refused = &SizeError{Err: ErrNoMemory, Bytes: size}
		if size > discarded {
			return nil, x.refused
		}
		if _, err := io.CopyN(io.Discard, rw, size); err != nil {
			return nil, fmt.Errorf("read past a response: %w", err)
		}
		return x, nil
	}
	x.size = int(held)
	if _, err := io.ReadFull(rw, x.buf[:held]); err != nil {
		return nil, fmt.Errorf("read a response of %d bytes: %w", size, err)
	}
	if err := x.read(version, size-held); err != nil {
		return nil, err
	}
	if err := x.pass(rw, size-held); err != nil {
		return nil, err
	}
	if x.response.Throttled > kafkaconn.SharedThrottle {
		return nil, errMuted
	}
	return x, nil
}

// pass reads the rest of a response whose first batch is larger than maxBatch, and keeps the batch's
// header. behind is the number of bytes that follow the buffer on the connection.
func (x *exchange) pass(rw io.Reader, behind int64) error {
	records := x.response.Records
	batch := recordbatch.Size(records)
	switch {
	case behind == 0 && (batch <= x.maxBatch || batch > int64(len(records))): // includes a batch that is cut off
		return nil
	case batch <= x.maxBatch, behind > 0 && len(records) < small/2:
		return &SizeError{ErrTooLarge, int64(x.size) + behind, x.maxBatch + Beside}
	case batch > int64(len(records))+behind:
		return fmt.Errorf("%w: its first batch is cut off", ErrMalformed)
	}
	records = records[:min(int64(len(records)), batch)]
	rest := &passing{x, rw, behind}
	passed, err := recordbatch.Pass(records, rest, x.maxBatch)
	if err != nil {
		return err
	}
	x.response.passed, x.response.Records = passed, recordbatch.Header(records)
	if _, err := io.Copy(io.Discard, rest); err != nil {
		return fmt.Errorf("read past a response: %w", err)
	}
	return nil
}

// passing reads the rest of a response from the connection. It ends when the call is abandoned, since the
// rest may take long.
type passing struct {
	x    *exchange
	from io.Reader
	left int64
}

func (p *passing) Read(b []byte) (int, error) {
	if p.left == 0 {
		return 0, io.EOF
	}
	if p.x.isGivenUp() {
		return 0, errGivenUp
	}
	n, err := p.from.Read(b[:min(int64(len(b)), p.left)])
	if p.left -= int64(n); errors.Is(err, io.EOF) && p.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// read parses the response; lacks is the number of its bytes that are not in the buffer. If Memory refuses
// the aborted transactions, read sets refused and returns nil: the connection stays usable.
func (x *exchange) read(version int16, lacks int64) error {
	b, err := parse(x.buf[:x.size], lacks, version, x.correlation, x.topics[0].Topic, x.partitions[0].Partition, &x.response)
	if lacks > 0 && errors.Is(err, ErrMalformed) { // the missing part may be after the buffer
		return &SizeError{ErrTooLarge, int64(x.size) + lacks, x.maxBatch + Beside}
	}
	if err != nil {
		return err
	}
	n := len(b) / abortedSize
	if n > cap(x.aborted) {
		if bytes := int64(n) * abortedSize; n > uncounted {
			if x.memory != nil && !x.memory.Take(bytes) {
				x.refused = &SizeError{Err: ErrNoMemory, Bytes: int64(x.size) + bytes}
				return nil
			}
			x.charged += bytes
		}
		x.aborted = make([]recordbatch.Aborted, n)
	}
	x.aborted = x.aborted[:n]
	for i := range x.aborted {
		x.aborted[i].Producer = int64(binary.BigEndian.Uint64(b[i*abortedSize:]))
		x.aborted[i].First = int64(binary.BigEndian.Uint64(b[i*abortedSize+8:]))
	}
	x.response.Aborted, x.response.exchange = x.aborted, x
	return nil
}

var smallBuffers = sync.Pool{New: func() any { return new([small]byte) }}

// room makes the buffer at least size bytes large, and less than four times as large unless it is small.
func (x *exchange) room(size int) bool {
	if size <= cap(x.buf) && (cap(x.buf) <= small || size > cap(x.buf)/4) {
		x.buf = x.buf[:cap(x.buf)]
		return true
	}
	x.drop()
	if size <= inline {
		x.buf = x.inline[:]
		return true
	}
	n := int64(max(small, (size+8191)&^8191)) // rounded as the allocator does
	if x.memory != nil && !x.memory.Take(n) {
		return false
	}
	if x.charged = n; n == small {
		x.buf = smallBuffers.Get().(*[small]byte)[:]
	} else {
		x.buf = make([]byte, n)
	}
	return true
}

// more reports whether the broker had more records than it could send: the next response then comes at
// once, and is as large.
func (x *exchange) more() bool { return 2*x.size >= int(x.partitions[0].PartitionMaxBytes) }

// release ends the use of a response. It keeps the buffer if the next response will probably fill it.
// Otherwise the next request may wait for long, and waits without memory.
func (x *exchange) release() {
	if x.response.exchange == nil {
		return
	}
	more := x.more()
	x.response = Response{}
	if len(x.aborted) > uncounted || !more {
		x.drop()
	}
}

// drop releases all memory.
func (x *exchange) drop() {
	if x.memory != nil && x.charged > 0 {
		x.memory.Release(x.charged)
	}
	if cap(x.buf) == small {
		smallBuffers.Put((*[small]byte)(x.buf[:small]))
	}
	if cap(x.aborted) > uncounted {
		x.aborted = nil
	}
	x.buf, x.size, x.charged, x.response = nil, 0, 0, Response{}
}

func (x *exchange) begin() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.givenUp {
		return false
	}
	x.stage = running
	return true
}

func (x *exchange) finish() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.stage = ended
	if x.givenUp {
		x.drop()
		close(x.over)
	}
}

// endCall returns the stage of the exchange at the end of its call. If the exchange has not ended, it is
// abandoned.
func (x *exchange) endCall() stage {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.givenUp = x.stage != ended
	return x.stage
}

func (x *exchange) isGivenUp() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.givenUp
}

// expect stores the size of the response.
func (x *exchange) expect(bytes int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.large = bytes
}

// expected returns the size that expect has stored.
func (x *exchange) expected() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.large
}

func (x *exchange) isOver() bool {
	select {
	case <-x.over:
		return true
	default:
		return false
	}
}
