// Package fetch requests the records of one partition from Kafka, one request at a time, through kafka-go's
// Transport. The Transport handles routing, connections, TLS, SASL and versions; this package writes the
// request and reads the response itself (protocol.RawExchanger), into a buffer that it reserves once the
// response's length is known.
//
// Every call waits until the throttle time of the broker's last answer has passed. It then ends with its
// context, or MaxWait and Grace after the request was sent. If a response was too large to arrive by then,
// the next call has more time. After a call is abandoned, its exchange on the connection may continue; the
// exchange releases its memory when it ends, at the same deadline.
//
//	Fetch ── RoundTrip ──▶ connection's goroutine: RawExchange
//	  │                      write, read the length, reserve memory, read the body
//	  │◀── response ─────────┘
//	  └─ abandoned: the exchange keeps its buffer until it ends
package fetch

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"net"
	"os"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/internal/retry"
)

var (
	// ErrNoMemory reports that Memory refused a reservation. The Fetcher stays usable, and has no memory
	// except that of abandoned calls.
	ErrNoMemory = errors.New("no memory for the response")
	// ErrTooLarge reports a response that is larger than MaxBatch allows, although its first batch is not.
	ErrTooLarge = errors.New("the response is larger than allowed")
	// ErrVersion reports a broker that does not support a version of Fetch with transactions, 4 or later
	// (Kafka 0.11).
	ErrVersion = errors.New("the broker's Fetch is too old")
	// ErrMalformed reports a response that breaks the protocol.
	ErrMalformed = errors.New("malformed fetch response")
)

// SizeError is an ErrNoMemory or ErrTooLarge with the size of the response.
type SizeError struct {
	Err   error
	Bytes int64 // of the response
	Limit int64 // with ErrTooLarge
}

func (e *SizeError) Error() string {
	if e.Limit > 0 {
		return fmt.Sprintf("%v: it has %d bytes, at most %d are", e.Err, e.Bytes, e.Limit)
	}
	return fmt.Sprintf("%v of %d bytes", e.Err, e.Bytes)
}

func (e *SizeError) Unwrap() error { return e.Err }

const (
	// Grace is how much longer than MaxWait a call may take. Without it a broker that hangs would block the
	// call forever.
	Grace = 5 * time.Second
	// MaxThrottle is the longest throttle time that a Fetcher waits. Kafka's brokers send a few seconds, and at
	// most about ten, unless a record batch is larger than the quota allows in that time.
	MaxThrottle = time.Minute
	// DefaultMaxWait is Kafka's default.
	DefaultMaxWait = 500 * time.Millisecond
	// DefaultMaxBytes is Kafka's default per partition.
	DefaultMaxBytes = 1 << 20
	// DefaultMaxBatch is far above MaxBytes, since brokers send a batch whole, however large it is.
	DefaultMaxBatch = 64 << 20
	// Beside is the number of bytes of a response that are kept in addition to a batch: its head and the
	// aborted transactions.
	Beside = 16 << 10
	// slowest is the rate, in bytes per second, by which a call gets more time after a response that came
	// too late.
	slowest = 1 << 20
)

// Fetcher fetches from one partition, one call at a time. It reads its settings at every call.
type Fetcher struct {
	Transport kafka.RoundTripper
	Addr      net.Addr // of the cluster; the Transport finds the leader
	ClientID  string
	Topic     string
	Partition int
	// MaxWait is how long the broker waits for the first record. It is truncated to ms.
	MaxWait time.Duration // 0: DefaultMaxWait
	// MaxBytes is the most bytes that the broker may send per request. A larger first batch is sent whole.
	MaxBytes int32 // 0: DefaultMaxBytes
	// MaxBatch is the size of the largest batch that is kept, in bytes. A larger batch is skipped, and one
	// Record stands for its records (see recordbatch.Whole).
	MaxBatch int64 // 0: DefaultMaxBatch
	// Memory must be safe for concurrent use, since a connection releases the memory of an abandoned call.
	// nil means no limit.
	Memory recordbatch.Memory

	exchange    *exchange
	correlation int32
	large       int64       // bytes of the previous response, if it did not arrive in time
	given       []*exchange // abandoned calls, whose exchange may still be running
	notBefore   time.Time   // the end of the throttle time of the last answer
}

// Response is the answer of the partition's leader. It is valid until Release, and until the next Fetch or
// Drop.
type Response struct {
	HighWatermark int64 // the end of the replicated log; -1 if the broker does not report it
	LastStable    int64 // the start of the first open transaction, or HighWatermark
	LogStart      int64 // -1 if the broker does not report it
	// Throttled is the throttle time that the broker requests because a quota is used up, at most
	// MaxThrottle. The next Fetch waits for it.
	Throttled time.Duration
	// Err is a kafka.Error, of the request or else of the partition, or nil.
	Err     error
	Records []byte // batches, the last of which may be cut off
	Aborted []recordbatch.Aborted

	passed   *recordbatch.Passed // set if Records is only the header of the first batch
	exchange *exchange
}

// Answered reports whether the answer covers the partition. A throttled answer does not, and has no error:
// it is unknown whether there are records.
func (r *Response) Answered() bool { return r.HighWatermark >= 0 && r.Err == nil }

// Fetch requests the records from an offset on, at read_committed, once the broker's throttle time is over.
// Its errors wrap the context's, the connection's, or one of this package's. The broker's own errors are in
// the Response.
func (f *Fetcher) Fetch(ctx context.Context, offset int64) (*Response, error) {
	if err := f.Pause(ctx); err != nil {
		return nil, fmt.Errorf("fetch %s/%d at %d: %w", f.Topic, f.Partition, offset, err)
	}
	ctx, cancel := context.WithTimeout(ctx, f.maxWait()+Grace+time.Duration(f.large/slowest)*time.Second)
	defer cancel()
	x := f.prepare(offset)
	_, err := f.Transport.RoundTrip(ctx, f.Addr, x)
	stage := x.endCall()
	if f.large = 0; err != nil {
		f.large = x.expected()
	}
	switch stage {
	case ended:
		if errors.Is(err, errMuted) {
			err = nil
		}
		if err == nil {
			err = x.refused
		}
		if err == nil {
			f.leaveAlone(x.response.Throttled)
			return &x.response, nil
		}
		x.drop()
	case unstarted:
		// The exchange will not start any more, but the connection may still read the request, so the empty
		// exchange is left to it.
		x.drop()
		f.exchange = nil
	case running:
		f.exchange = nil
		f.given = append(f.given, x)
	}
	if err == nil {
		err = fmt.Errorf("%w: the exchange never took place", ErrMalformed)
	}
	return nil, fmt.Errorf("fetch %s/%d at %d: %w", f.Topic, f.Partition, offset, named(ctx, err))
}

// leaveAlone delays the next call by d. It adds up to a tenth at random, so that partitions whose throttle
// ends at the same moment, when a quota's window ends, send their requests one after the other.
func (f *Fetcher) leaveAlone(d time.Duration) {
	if d > 0 {
		f.notBefore = time.Now().Add(d + time.Duration(rand.Int63n(int64(d/10)+1))) //nolint:gosec // no secret
	}
}

// Pause waits until the broker's throttle time is over. It releases the memory first.
func (f *Fetcher) Pause(ctx context.Context) error {
	d := time.Until(f.notBefore)
	if d <= 0 {
		return nil
	}
	if f.exchange != nil {
		f.exchange.drop()
	}
	return retry.Sleep(ctx, d)
}

// named adds the error of the context to an error, if the call ended with it. The connection has the same
// deadline, and may report a timeout first.
func named(ctx context.Context, err error) error {
	end := ctx.Err()
	if end == nil && errors.Is(err, os.ErrDeadlineExceeded) {
		end = context.DeadlineExceeded
	}
	if end == nil || errors.Is(err, end) {
		return err
	}
	return fmt.Errorf("%w: %w", end, err)
}

// Read resets a reader to the response's records from an offset on.
func (r *Response) Read(into *recordbatch.Reader, from int64) {
	if r.passed != nil {
		into.ResetPassed(r.Records, r.passed, from, r.Aborted)
		return
	}
	into.Reset(r.Records, from, r.Aborted)
}

// Bytes returns the number of bytes of batches in the response.
func (r *Response) Bytes() int64 {
	if r.passed != nil {
		return r.passed.Size
	}
	return int64(len(r.Records))
}

// Epochs returns recordbatch.Epochs of the response.
func (r *Response) Epochs() (first, last int32, next int64, ok bool) {
	return recordbatch.Epochs(r.Records, r.passed)
}

// More reports whether the broker had more records than it could send, so that the next response comes at
// once.
func (r *Response) More() bool { return r.exchange != nil && r.exchange.more() }

// Release gives back the response's memory, unless the broker had more records: the next response then
// probably fills it again.
func (r *Response) Release() {
	if r.exchange != nil {
		r.exchange.release()
	}
}

// Free releases the memory that is kept for the next response. The caller calls it before it waits for
// anything but the broker.
func (f *Fetcher) Free() {
	if f.exchange != nil {
		f.exchange.drop()
	}
}

// Drop releases all memory, and waits for abandoned calls. If it returns nil the Fetcher has no memory, and
// can be used again. The caller calls it before it waits for memory or is idle for long.
func (f *Fetcher) Drop(ctx context.Context) error {
	f.Free()
	for len(f.given) > 0 {
		select {
		case <-f.given[0].over:
			f.given = f.given[1:]
		case <-ctx.Done():
			return fmt.Errorf("wait for the end of a fetch of %s/%d: %w", f.Topic, f.Partition, context.Cause(ctx))
		}
	}
	f.given = nil
	return nil
}

// prepare prepares the exchange of the previous call, or a new one.
func (f *Fetcher) prepare(offset int64) *exchange {
	for len(f.given) > 0 && f.given[0].isOver() {
		f.given = f.given[1:]
	}
	x := f.exchange
	if x == nil {
		x = newExchange()
		f.exchange = x
	}
	x.release()
	f.correlation++
	x.prepare(f, offset)
	return x
}

func (f *Fetcher) maxWait() time.Duration {
	if f.MaxWait > 0 {
		return f.MaxWait
	}
	return DefaultMaxWait
}

func (f *Fetcher) maxBytes() int32 {
	if f.MaxBytes > 0 {
		return f.MaxBytes
	}
	return DefaultMaxBytes
}

func (f *Fetcher) maxBatch() int64 {
	if f.MaxBatch > 0 {
		return f.MaxBatch
	}
	return DefaultMaxBatch
}
