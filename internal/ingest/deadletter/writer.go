package deadletter

import (
	"context"
	"errors"
	"time"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
)

// Writer writes bad records of one partition to its dead-letter topic, as
// they came, with headers that say why and where from. They are gathered while
// a response is folded and acknowledged by all replicas before the batch they
// belong to is given to the sweeper: once or more, never none.
//
// They go by kafka-go, like all that the consumer does, and not by an idempotent producer:
// a takeover writes letters again anyway, so that readers know an original by its headers,
// and an attempt here ends when it says so, while a producer's can't be taken back.
//
// Who writes holds what it has read, so a write isn't waited for: it is tried for a
// moment. If the topic can't be written by then, the flow ends and everything is let go,
// but for one letter, and no flow begins before that one is written (see Outbox.Retry).
// What was folded is read again, and its letters are written again.
type Writer struct {
	outbox *Outbox
	waits  func(error) // is given why writing waits, nil once it goes on

	Memory   recordbatch.Memory // what is gathered is charged to it; nil: to nobody
	Final    bool               // there is no more memory to be had than there is
	Written  *Written           // takes note of what was acknowledged; nil: it isn't in order
	Once     bool               // an error that may pass is returned, not tried again
	None     bool               // nothing is written: whoever counts what is replayed has, or is going to
	Patience time.Duration      // how long a quota is waited out here
	Wanted   func() bool        // others want what is held here; nil: nobody does

	gotOn  bool          // a set was noted in Written: to end the flow isn't for nothing
	waited time.Duration // for the quota, in this flow

	deadLetters []deadLetter
	size        int
	charged     int64
	failed      error // of the last write: what it was about is lost to this flow
}

const (
	// gather is how much is written at once, in bytes of what it takes in memory.
	gather = 256 << 10
	// deadLetterBytes is what a dead letter takes beside its original, about, and headerBytes a
	// header beside its text.
	deadLetterBytes = 1 << 10
	headerBytes     = 64
	// copies is how often a letter is in memory while it is written: itself, as a record
	// and compressed.
	copies = 3
	// maxHeaders and maxHeaderBytes bound the headers of an original that are copied.
	maxHeaders     = 100
	maxHeaderBytes = 32 << 10
	// tries is how long a write that fails is tried again with everything held, but twice
	// at least: the first may have met a connection that another's quota had muted for a
	// request of another kind (see kafkaconn's unmuting).
	tries = time.Second
)

// ErrNoMemory is a refusal by Memory: nothing was taken.
var ErrNoMemory = errors.New("no memory for a dead letter")

// Add takes a record, and writes what was gathered once that is enough. The
// record's bytes are copied unless it is written right away. id is the event's, nil
// where it isn't known. Without memory for it, it is ErrNoMemory, and nothing was taken;
// where there is no more to be had, it is written right away, and a large one without
// its value.
func (w *Writer) Add(ctx context.Context, rec *recordbatch.Record, id []byte, reason event.Reason, message string) error {
	if w.None {
		return nil
	}
	size := deadLetterBytes + len(rec.Key) + len(rec.Value) + len(id) +
		min(len(rec.Headers), maxHeaderBytes) + headerBytes*min(rec.HeaderCount, maxHeaders)
	if w.size+size > gather {
		if err := w.Flush(ctx); err != nil {
			return err
		}
	}
	taken := w.take(int64(copies * size))
	if !taken && !w.Final {
		return ErrNoMemory
	}
	keep := taken && size <= gather
	l := w.outbox.deadLetter(rec, id, reason, message, keep)
	if !taken && size > gather {
		l.strip("fold_memory has no room for it")
	}
	w.deadLetters = append(w.deadLetters, l)
	w.size += size
	if !keep {
		return w.Flush(ctx)
	}
	return nil
}

// Holds reports whether anything is gathered that memory is held for.
func (w *Writer) Holds() bool { return w.charged > 0 }

func (w *Writer) take(n int64) bool {
	if w.Memory == nil {
		return true
	}
	if !w.Memory.Take(n) {
		return false
	}
	w.charged += n
	return true
}

// Flush writes all that was gathered, and returns once that is acknowledged. After
// an error every further flush returns it: a batch with letters that weren't
// written must not be swept, whoever asks last.
func (w *Writer) Flush(ctx context.Context) error {
	if w.failed != nil || len(w.deadLetters) == 0 {
		return w.failed
	}
	w.failed = w.write(ctx, w.deadLetters)
	w.Forget()
	return w.failed
}

// Forget drops what was gathered: its records are going to be read again.
func (w *Writer) Forget() {
	clear(w.deadLetters)
	w.deadLetters, w.size = w.deadLetters[:0], 0
	if w.charged > 0 {
		w.Memory.Release(w.charged)
		w.charged = 0
	}
}
