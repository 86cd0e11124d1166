package ingest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/fetch"
	"github.com/standings/standings/internal/ingest/recordbatch"
	"github.com/standings/standings/internal/ledger"
)

// deadLetters writes bad records of one partition to its dead-letter topic, as
// they came, with headers that say why and where from. They are gathered while
// a response is folded and acknowledged by all replicas before the batch they
// belong to is given to the sweeper: once or more, never none.
//
// Who writes holds what it has read, so a write isn't waited for: it is tried for a
// moment. If the topic can't be written by then, the flow ends and everything is let go,
// but for one letter, and no flow begins before that one is written (see retryletter.go).
// What was folded is read again, and its letters are written again.
type deadLetters struct {
	client    *kafka.Client
	timeout   time.Duration
	topic     string // of the source
	partition int
	stats     *Stats
	blocked   func(error)   // told why writing waits, nil once it goes on
	once      bool          // an error that may pass is returned, not tried again
	none      bool          // a replay writes none: the consumer has, or is going to
	unwritten func(letter)  // keeps a letter that couldn't be written; nil: nobody does
	quota     *letterQuota  // the partition's
	patience  time.Duration // how long that is waited out here
	done      *lettered     // takes note of what was acknowledged; nil: it isn't in order
	gotOn     bool          // a set was noted there: to end the flow isn't for nothing
	waited    time.Duration // for the quota, in this flow
	wanted    func() bool   // others want what is held here; nil: nobody does

	memory recordbatch.Memory // what is gathered is charged to it; nil: to nobody
	final  bool               // there is no more memory to be had than there is

	letters []letter
	size    int
	charged int64
	failed  error // of the last write: what it was about is lost to this flow
}

const (
	// gather is how much is written at once, in bytes of what it takes in memory.
	gather = 256 << 10
	// letterBytes is what a letter takes beside its original, about, and headerBytes a
	// header beside its text.
	letterBytes = 1 << 10
	headerBytes = 64
	// copies is how often a letter is in memory while it is written: itself, as a record
	// and compressed.
	copies = 3
	// maxHeaders and maxHeaderBytes bound the headers of an original that are copied.
	maxHeaders     = 100
	maxHeaderBytes = 32 << 10
	// tries is how long a write that fails is tried again with everything held, but twice
	// at least: the first may have met a connection that another's quota had muted for a
	// request of another kind (see unmuting).
	tries = time.Second
)

func (w *worker) newLetters(blocked func(error)) *deadLetters {
	return &deadLetters{
		client: w.kafka.client, timeout: w.Timeout, topic: w.topic, partition: w.partition,
		stats: w.Stats, blocked: blocked, none: w.until != nil, unwritten: w.keepLetter,
		quota: &w.quota, patience: tries,
	}
}

// DeadLetterTopic is where the bad records of a topic go.
func DeadLetterTopic(topic string) string { return topic + ".dlq" }

// add takes a record, and writes what was gathered once that is enough. The
// record's bytes are copied unless it is written right away. id is the event's, nil
// where it isn't known. Without memory for it, it is errNoMemory, and nothing was taken;
// where there is no more to be had, it is written right away, and a large one without
// its value.
func (d *deadLetters) add(ctx context.Context, rec *recordbatch.Record, id []byte, reason event.Reason, message string) error {
	if d.none {
		return nil
	}
	size := letterBytes + len(rec.Key) + len(rec.Value) + len(id) +
		min(len(rec.Headers), maxHeaderBytes) + headerBytes*min(rec.HeaderCount, maxHeaders)
	if d.size+size > gather {
		if err := d.flush(ctx); err != nil {
			return err
		}
	}
	taken := d.take(int64(copies * size))
	if !taken && !d.final {
		return errNoMemory
	}
	keep := taken && size <= gather
	l := d.letter(rec, id, reason, message, keep)
	if !taken && size > gather {
		l.strip("fold_memory has no room for it")
	}
	d.letters = append(d.letters, l)
	d.size += size
	if !keep {
		return d.flush(ctx)
	}
	return nil
}

func (d *deadLetters) take(n int64) bool {
	if d.memory == nil {
		return true
	}
	if !d.memory.Take(n) {
		return false
	}
	d.charged += n
	return true
}

// letter is a record as it is to be written. kafka-go's own uses up its bytes
// when it is sent, so one is made for every try.
type letter struct {
	offset     int64 // of the original
	time       time.Time
	key, value []byte
	headers    []kafka.Header // the original's, then ours
	ours       int            // how many those are
}

func (d *deadLetters) letter(rec *recordbatch.Record, id []byte, reason event.Reason, message string, keep bool) letter {
	bytes := func(b []byte) []byte {
		if keep && b != nil {
			return append([]byte{}, b...)
		}
		return b
	}
	// By the original's time it might be too old to be kept, or too far in the
	// future to be taken.
	l := letter{offset: rec.Offset, time: time.Now(), key: bytes(rec.Key), value: bytes(rec.Value)}
	if rec.Oversize > 0 {
		message = fmt.Sprintf("%s (%d bytes; the original stands at its source offset)", message, rec.Oversize)
	}
	copied, dropped := 0, 0
	rec.EachHeader(func(key, value []byte) {
		if copied += len(key) + len(value); len(l.headers) == maxHeaders || copied > maxHeaderBytes {
			dropped++
			return
		}
		l.headers = append(l.headers, kafka.Header{Key: string(key), Value: bytes(value)})
	})
	if dropped > 0 {
		l.headers = append(l.headers, kafka.Header{Key: "standings-headers-dropped", Value: strconv.AppendInt(nil, int64(dropped), 10)})
	}
	own := len(l.headers)
	for _, h := range [...][2]string{
		{"reason", string(reason)},
		{"message", message},
		{"topic", d.topic},
		{"partition", strconv.Itoa(d.partition)},
		{"offset", strconv.FormatInt(rec.Offset, 10)},
		{"timestamp", strconv.FormatInt(rec.Time, 10)},
	} {
		l.headers = append(l.headers, kafka.Header{Key: "standings-" + h[0], Value: []byte(h[1])})
	}
	if id != nil {
		l.headers = append(l.headers, kafka.Header{Key: "standings-event-id", Value: bytes(id)})
	}
	l.ours = len(l.headers) - own
	return l
}

// strip takes the value away, or else the key and the original's headers, and says why
// of the value. It reports false where nothing of the original is left.
func (l *letter) strip(why string) bool {
	ours := l.headers[len(l.headers)-l.ours:]
	switch {
	case l.value != nil:
		l.value = nil
		ours[1].Value = fmt.Appendf(ours[1].Value, " (without its value: %s; the original stands at its source offset)", why)
	case l.key != nil || len(l.headers) > l.ours:
		l.key, l.headers = nil, ours
	default:
		return false
	}
	return true
}

// flush writes all that was gathered, and returns once that is acknowledged. After
// an error every further flush returns it: a batch with letters that weren't
// written must not be swept, whoever asks last.
func (d *deadLetters) flush(ctx context.Context) error {
	if d.failed != nil || len(d.letters) == 0 {
		return d.failed
	}
	d.failed = d.write(ctx, d.letters)
	d.forget()
	return d.failed
}

// forget drops what was gathered: its records are going to be read again.
func (d *deadLetters) forget() {
	clear(d.letters)
	d.letters, d.size = d.letters[:0], 0
	if d.charged > 0 {
		d.memory.Release(d.charged)
		d.charged = 0
	}
}

// write tries until the records are acknowledged, the context ends, or it has tried for
// a moment. A set that the broker refuses for its size is written one by one, and a
// record it refuses goes without its value.
func (d *deadLetters) write(ctx context.Context, letters []letter) error {
	if err := d.heed(ctx); err != nil {
		return err
	}
	wait, began := newWait(), time.Now()
	for tried := 1; ; tried++ {
		err := d.produce(ctx, letters)
		switch {
		case err == nil:
			d.stats.DeadLetters.Add(int64(len(letters)))
			d.blocked(nil)
			d.gotOn = d.done.acknowledged(letters)
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		switch Meaning(err) {
		case ledger.DeadLetter:
			return d.refused(ctx, letters, err)
		case ledger.Retry:
			err = &Waiting{WaitsDeadLetters, err, "check that topic " + DeadLetterTopic(d.topic) + " exists and has as many replicas in sync as it needs; it goes on by itself"}
			d.blocked(err)
			if d.once || tried > 1 && time.Since(began) >= tries {
				return d.failing(letters, err)
			}
			d.stats.KafkaTries.Add(1)
			if err := wait.next(ctx); err != nil {
				return err
			}
			if err := d.heed(ctx); err != nil {
				return d.failing(letters, err)
			}
		default:
			return d.failing(letters, &Halt{HaltKafka,
				fmt.Sprintf("the dead letters of %s/%d can't be written to %s: %v", d.topic, d.partition, DeadLetterTopic(d.topic), err),
				letterRemedy(DeadLetterTopic(d.topic), err)})
		}
	}
}

// failing keeps one of the letters, so that whether the topic can be written is tried
// with that alone.
func (d *deadLetters) failing(letters []letter, err error) error {
	if d.unwritten != nil {
		d.unwritten(letters[0])
	}
	return err
}

// letterRemedy is what to do about an error of a dead-letter topic that won't pass.
func letterRemedy(topic string, err error) string {
	switch {
	case errors.Is(err, kafka.InvalidTimestamp):
		return "compare this machine's clock with the brokers', which take a dead letter's time, that of its writing, for too far from theirs; " +
			"or raise message.timestamp.before.max.ms and message.timestamp.after.max.ms of " + topic
	case errors.Is(err, kafka.InvalidRecord):
		return "set cleanup.policy=delete on " + topic + ": a compacted topic takes no record without a key, and forgets letters with equal keys"
	}
	return "let this user write to that topic"
}

func (d *deadLetters) refused(ctx context.Context, letters []letter, cause error) error {
	// What was refused is paid for by the quota too: a flow that ended for that would be
	// refused the same again. See heed for how long that may take.
	defer func(patience time.Duration) { d.patience = patience }(d.patience)
	d.patience = fetch.MaxThrottle
	if len(letters) > 1 {
		for i := range letters {
			if err := d.write(ctx, letters[i:i+1]); err != nil {
				return err
			}
		}
		return nil
	}
	l := letters[0]
	if !l.strip(fmt.Sprintf("the broker refused it: %v", cause)) {
		return d.failing(letters, &Halt{HaltKafka,
			fmt.Sprintf("%s refuses even the headers of a dead letter of %s/%d: %v", DeadLetterTopic(d.topic), d.topic, d.partition, cause),
			"raise max.message.bytes of that topic"})
	}
	return d.write(ctx, []letter{l})
}

func (d *deadLetters) produce(ctx context.Context, letters []letter) error {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	records := make([]kafka.Record, len(letters))
	for i, l := range letters {
		records[i] = kafka.Record{Time: l.time, Key: kafka.NewBytes(l.key), Value: kafka.NewBytes(l.value), Headers: l.headers}
	}
	r, err := d.client.Produce(ctx, &kafka.ProduceRequest{
		Topic: DeadLetterTopic(d.topic), Partition: d.partition, RequiredAcks: kafka.RequireAll,
		Records: kafka.NewRecordReader(records...),
		// Gzip takes least memory, and bad records are often alike.
		Compression: kafka.Gzip,
	})
	if err == nil {
		d.quota.leaveAlone(r.Throttle)
		err = r.Error
	}
	if err == nil {
		for _, e := range r.RecordErrors {
			err = errors.Join(err, e)
		}
	}
	if err != nil {
		return fmt.Errorf("write %d dead letters to %s/%d: %w", len(letters), DeadLetterTopic(d.topic), d.partition, err)
	}
	return nil
}
