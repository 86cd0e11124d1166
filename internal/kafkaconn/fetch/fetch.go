// Package fetch requests one partition's records of Kafka, one request at a time,
// through kafka-go's Transport: routing, connections, TLS, SASL and versions are
// its own, while request and response are read and written here
// (protocol.RawExchanger), into a buffer that is taken once the response's
// length is known.
//
// Every call ends: with its context, or MaxWait and Grace after it was sent, which
// is once the throttle time of the broker's last answer has passed. After a response
// that was too large to arrive by then, the next call has more time. What a
// call that was given up still holds comes back when its exchange on the
// connection has ended, which the same deadline bounds.
//
//	Fetch ── RoundTrip ──▶ connection's goroutine: RawExchange
//	  │                      write, read the length, take memory, read the body
//	  │◀── response ─────────┘
//	  └─ given up: the exchange keeps its buffer, and gives it back at its end
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
	// ErrNoMemory is a refusal by Memory. The Fetcher stays usable, and holds
	// nothing but what calls that were given up left behind.
	ErrNoMemory = errors.New("no memory for the response")
	// ErrTooLarge is a response that is larger than its first batch and MaxBatch account for.
	ErrTooLarge = errors.New("the response is larger than allowed")
	// ErrVersion is a broker that doesn't speak a version of Fetch that knows
	// transactions, 4 or later (Kafka 0.11).
	ErrVersion = errors.New("the broker's Fetch is too old")
	// ErrMalformed is a response that breaks the protocol.
	ErrMalformed = errors.New("malformed fetch response")
)

// SizeError is an ErrNoMemory or ErrTooLarge, and says how large the response is.
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
	// Grace is how long a call may take beyond MaxWait. Without it a broker that
	// hangs would hold the call for ever.
	Grace = 5 * time.Second
	// MaxThrottle is the longest throttle time that is waited out.
	// Kafka's brokers answer with a few seconds, about ten at most, unless a record batch
	// is larger than what the quota lets through in that time.
	MaxThrottle = time.Minute
	// DefaultMaxWait is Kafka's own default.
	DefaultMaxWait = 500 * time.Millisecond
	// DefaultMaxBytes is Kafka's own default for a partition.
	DefaultMaxBytes = 1 << 20
	// DefaultMaxBatch leaves room for a batch far above MaxBytes, which comes
	// whole, however large.
	DefaultMaxBatch = 64 << 20
	// Beside is how many bytes of a response are held beside a batch: for its head and the
	// aborted transactions.
	Beside = 16 << 10
	// slowest is the rate, in bytes per second, that a response which came too late the first
	// time is given time for.
	slowest = 1 << 20
)

// Fetcher fetches from one partition, one call at a time. Its settings are read
// at every call.
type Fetcher struct {
	Transport kafka.RoundTripper
	Addr      net.Addr // of the cluster; the Transport finds the leader
	ClientID  string
	Topic     string
	Partition int
	// MaxWait is how long the broker waits for the first record, to the ms.
	MaxWait time.Duration // 0: DefaultMaxWait
	// MaxBytes is the most that a request lets the broker send. A first batch that is
	// larger comes whole.
	MaxBytes int32 // 0: DefaultMaxBytes
	// MaxBatch is the largest batch that is held, in bytes. A larger one is read past, and its
	// records are one Record (see recordbatch.Whole).
	MaxBatch int64 // 0: DefaultMaxBatch
	// Memory must be safe for concurrent use: a connection gives back what a call
	// that was given up has left. nil: without bounds.
	Memory recordbatch.Memory

	exchange    *exchange
	correlation int32
	large       int64       // bytes of the response that the call before was too short for
	given       []*exchange // calls given up, whose exchange may still go on
	notBefore   time.Time   // the throttle time of its last answer ends then
}

// Response is what the partition's leader said. It is valid until Release, which
// the next Fetch and Drop do as well.
type Response struct {
	HighWatermark int64 // the log's end, as far as it is replicated; -1 where the broker doesn't say
	LastStable    int64 // where the first open transaction begins, or HighWatermark
	LogStart      int64 // -1 where the broker doesn't say
	// Throttled is how long the broker asks to be left alone, at most MaxThrottle: a
	// quota is used up. The next Fetch waits for that.
	Throttled time.Duration
	// Err is a kafka.Error, of the request or else of the partition; nil is none.
	Err     error
	Records []byte // batches, the last of which may be cut off
	Aborted []recordbatch.Aborted

	passed   *recordbatch.Passed // Records are its header
	exchange *exchange
}

// Answered reports whether the broker said anything of the partition. A response
// without it and without an error is a throttled one: whether there are records
// isn't known.
func (r *Response) Answered() bool { return r.HighWatermark >= 0 && r.Err == nil }

// Fetch requests the records from an offset on, at read_committed, once the broker's
// throttle time is over. Errors wrap
// the context's, the connection's, or one of this package's; what the broker
// answers, an error too, is in the Response.
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
		// It will not begin any more, but the connection may still look at the
		// request: the exchange is left behind, empty.
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

// leaveAlone has the next call wait. Partitions whose throttle ends at the same
// moment, which is when a quota's window moves on, ask one after the other.
func (f *Fetcher) leaveAlone(d time.Duration) {
	if d > 0 {
		f.notBefore = time.Now().Add(d + time.Duration(rand.Int63n(int64(d/10)+1))) //nolint:gosec // no secret
	}
}

// Pause waits until the broker's throttle time is over, and holds nothing meanwhile.
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

// named makes one error of what the end of a call shows as: the context's error,
// or a timeout of the connection, which has the same deadline and may be first.
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

// Read has a reader begin the response's records, of which those from an offset on are wanted.
func (r *Response) Read(into *recordbatch.Reader, from int64) {
	if r.passed != nil {
		into.ResetPassed(r.Records, r.passed, from, r.Aborted)
		return
	}
	into.Reset(r.Records, from, r.Aborted)
}

// Bytes is how many bytes of batches came.
func (r *Response) Bytes() int64 {
	if r.passed != nil {
		return r.passed.Size
	}
	return int64(len(r.Records))
}

// Epochs is recordbatch.Epochs of the response.
func (r *Response) Epochs() (first, last int32, next int64, ok bool) {
	return recordbatch.Epochs(r.Records, r.passed)
}

// More reports whether the broker had more than it could send, so that the next
// response is going to come at once.
func (r *Response) More() bool { return r.exchange != nil && r.exchange.more() }

// Release gives the response's memory back, except where there was more: the next
// response is likely to fill it again.
func (r *Response) Release() {
	if r.exchange != nil {
		r.exchange.release()
	}
}

// Free gives back what was kept for the next response. Whoever is going to wait for
// anything but the broker's answer calls it.
func (f *Fetcher) Free() {
	if f.exchange != nil {
		f.exchange.drop()
	}
}

// Drop gives everything back, and waits for calls that were given up. After a nil
// the Fetcher holds nothing, and can go on. Whoever is going to wait for memory,
// or is idle for long, calls it.
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

// prepare readies the exchange of the call before, or a new one.
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
