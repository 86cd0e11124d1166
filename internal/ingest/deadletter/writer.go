package deadletter

import (
	"context"
	"errors"
	"time"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/kafkaconn/recordbatch"
)

// Writer writes bad records of one partition to its dead-letter topic, unchanged, with headers that give the
// reason and the source. It gathers them while a response is folded. All replicas acknowledge them before the
// batch is swept. Delivery is at least once.
//
// It uses kafka-go, like the rest of the consumer, and no idempotent producer. A takeover writes dead letters
// again in any case, so readers identify an original by its headers. Besides, an attempt here ends when it
// reports its end, while a producer's attempt cannot be withdrawn.
//
// The reader and the sweeper hold memory while they write, so a write is only tried for a second. If it still
// fails, the flow ends and frees everything except one dead letter. No flow starts before that one is written
// (see Outbox.Retry). The next flow reads the records again and writes their dead letters again.
type Writer struct {
	outbox *Outbox
	waits  func(error) // gets the reason to wait, and nil when the write continues

	Memory   recordbatch.Memory // charged for gathered records; nil: they are not charged
	Final    bool               // no more memory can become free
	Written  *Written           // records what was acknowledged; nil if the records are not in offset order
	Once     bool               // return a transient error instead of trying again
	None     bool               // write nothing: the worker that counts these records has written them, or will
	Patience time.Duration      // the longest wait for a quota with the flow's memory held
	Wanted   func() bool        // reports whether others want the memory held here; nil: none do

	gotOn  bool          // Written recorded a set, so the next flow continues after it
	waited time.Duration // for the quota, in this flow

	deadLetters []deadLetter
	size        int
	charged     int64
	failed      error // the last write's error: its records are lost to this flow
}

const (
	// gather is the size of one write, in bytes in memory.
	gather = 256 << 10
	// deadLetterBytes is about what a dead letter takes in addition to its original; headerBytes what a header
	// takes in addition to its text.
	deadLetterBytes = 1 << 10
	headerBytes     = 64
	// copies is the number of copies in memory during a write: the dead letter, the record, and the compressed
	// record.
	copies = 3
	// maxHeaders and maxHeaderBytes bound the headers that are copied from an original.
	maxHeaders     = 100
	maxHeaderBytes = 32 << 10
	// tries is how long a failing write is tried again while the flow holds its memory. A write is tried at
	// least twice: the first try may use a connection that a quota has muted for a request of another kind (see
	// kafkaconn's unmuting).
	tries = time.Second
)

// ErrNoMemory reports that Memory refused the bytes. Nothing was added.
var ErrNoMemory = errors.New("no memory for a dead letter")

// Add adds a record, and writes what was gathered once it is large enough. It copies the record's bytes unless
// it writes it at once. id is the event's id, nil if unknown. Without memory it returns ErrNoMemory and adds
// nothing; if Final is set, it writes the record at once, and a large one without its value.
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

// Holds reports whether the writer holds memory for gathered records.
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

// Flush writes everything gathered, and returns once that is acknowledged. After an error every later Flush
// returns the same error: a batch whose dead letters were not written must not be swept.
func (w *Writer) Flush(ctx context.Context) error {
	if w.failed != nil || len(w.deadLetters) == 0 {
		return w.failed
	}
	w.failed = w.write(ctx, w.deadLetters)
	w.Forget()
	return w.failed
}

// Forget drops what was gathered. The records will be read again.
func (w *Writer) Forget() {
	clear(w.deadLetters)
	w.deadLetters, w.size = w.deadLetters[:0], 0
	if w.charged > 0 {
		w.Memory.Release(w.charged)
		w.charged = 0
	}
}
