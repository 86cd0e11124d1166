package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/recordbatch"
	"github.com/standings/standings/internal/ledger"
)

var overflowIndex = reasonIndex(event.Overflow)

var errTurn = errors.New("another partition reads a batch again, for members whose points leave the range")

// overflow takes out of a piece the members whose standings it would take out of
// range. It reads the batch again, for the fold keeps sums and not events, and
// dead-letters all of their events in it. It returns how many those were.
//
// It reads outside of the memory budget, since the batch is held meanwhile and
// nobody waits while holding: one partition at a time, with a token for it.
func (s *sweeper) overflow(ctx context.Context, b *batch, p *ledger.Piece, members []string) (int64, error) {
	refused := map[string]bool{}
	for _, m := range members {
		refused[m] = true
	}
	select {
	case s.again <- struct{}{}:
	default:
		s.writing(errTurn) // the one before may have to wait for Kafka
		select {
		case s.again <- struct{}{}:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
	defer func() { <-s.again }()
	// The worker's own reader goes on meanwhile: nothing of it may be touched.
	r := &reader{worker: s.worker, fetcher: s.fetcher(nil), blocked: s.writing, idle: newWait()}
	r.records = recordbatch.Reader{MaxRecord: s.maxResponse, MaxCodec: s.maxCodec}
	defer r.records.Close()
	o := &overflowing{
		reader: r, decoder: event.NewDecoder(s.Events), batch: b, refused: refused,
		letters: s.newLetters(s.writing),
	}
	// Nobody waits with the token: a dead-letter topic that can't be written must
	// hold up its own partition alone.
	o.letters.once = true
	if err := o.read(ctx); err != nil {
		return 0, err
	}
	without(p, refused)
	return o.found, nil
}

// without takes members out of a piece.
func without(p *ledger.Piece, refused map[string]bool) {
	for i := range p.Groups {
		kept := p.Groups[i].Members[:0]
		for _, m := range p.Groups[i].Members {
			if !refused[string(m.ID)] {
				kept = append(kept, m)
			}
		}
		p.Groups[i].Members = kept
	}
}

// overflowing is a second reading of a batch for the events of some members.
type overflowing struct {
	reader  *reader
	decoder *event.Decoder // the worker's own is in use by its reader
	letters *deadLetters
	batch   *batch
	refused map[string]bool
	event   event.Event
	found   int64
}

func (o *overflowing) read(ctx context.Context) error {
	from, to := o.batch.From(), o.batch.To()
	for from < to {
		resp, err := o.reader.fetch(ctx, from)
		if err != nil {
			return err
		}
		o.reader.records.Reset(resp.Records, from, resp.Aborted)
		for err == nil {
			var rec *recordbatch.Record
			if rec, err = o.reader.records.Next(); err == nil && rec.Offset < to {
				err = o.one(ctx, rec)
			} else if err == nil {
				err = io.EOF
			}
		}
		from = o.reader.records.Position()
		resp.Release()
		if !errors.Is(err, io.EOF) {
			return o.reader.failed(err)
		}
	}
	return o.letters.flush(ctx)
}

func (o *overflowing) one(ctx context.Context, rec *recordbatch.Record) error {
	if rec.Value == nil || decode(o.decoder, rec, &o.event) != nil || !o.refused[string(o.event.User)] {
		return nil
	}
	if late, err := o.batch.Late(o.event.Time, rec.Time); err != nil || late {
		return nil //nolint:nilerr // a time that no calendar has was dead-lettered as such
	}
	o.found++
	return o.letters.add(ctx, rec, o.decoder.ID(), event.Overflow,
		fmt.Sprintf("with the events of %q from offset %d to %d a standing would leave ±%d points",
			clipped(o.event.User), o.batch.From(), o.batch.To()-1, o.reader.Events.MaxPoints))
}

func clipped(id []byte) []byte {
	const most = 48
	return id[:min(len(id), most)]
}
