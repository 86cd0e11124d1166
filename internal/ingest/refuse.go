package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/fetch"
	"github.com/standings/standings/internal/ingest/recordbatch"
	"github.com/standings/standings/internal/ledger"
)

// Members that the standings refuse.
//
// Whom a piece names loses all events in the batch to the dead-letter topic, and those
// are in the log alone: the fold keeps sums. To read the batch again for every piece that
// names somebody would cost pieces times events, so the first refusal in a batch has
// all that is left of it checked:
//
//  1. the members that the piece names are marked in the batch;
//  2. every piece behind it is checked, with the ledger where it is, and the members
//     that it names are marked too;
//  3. [from, to) is read again, once, and the events of all marked members are
//     dead-lettered;
//  4. the sweep goes on from that piece, cut anew without them.
//
// Another partition may change the same standings meanwhile. Whoever leaves the range
// only then is named by a piece later, and another round takes out those; each takes at
// least one member out, so it ends. Whoever would fit again by then stays refused: their
// dead letters are written.

// refusals are what a kind of refusal is to the dead-letter topic.
var refusals = [ledger.Reasons]struct {
	reason  event.Reason
	message func(c *Config) string
}{
	ledger.Overflow: {event.Overflow, func(c *Config) string {
		return fmt.Sprintf("a standing would leave ±%d points", c.Events.MaxPoints)
	}},
	ledger.WindowLimit: {event.WindowLimit, func(*Config) string {
		return "a window would be opened beyond max_windows"
	}},
}

// refuse takes the members that a piece's answer names out of the batch, and all those of
// the pieces behind it.
func (s *sweeper) refuse(ctx context.Context, b *batch, p *ledger.Piece, named []ledger.Refusal) error {
	if err := s.mark(b, named); err != nil {
		return err
	}
	expected := p.Expected // the next piece takes the place of this one
	for {
		piece, _, ok := s.pieces.Next(s.pace.width())
		if !ok {
			break
		}
		// No piece is in yet, so all of them are checked where the first would begin.
		piece.Expected = expected
		answer, err := s.check(ctx, piece)
		if err != nil {
			return err
		}
		if err := s.mark(b, answer.Refused); err != nil {
			return err
		}
	}
	s.pieces.Rewind(expected)
	if s.until != nil { // whoever wrote what is replayed has written the dead letters
		b.Found()
		return nil
	}
	return s.letter(ctx, b)
}

// mark takes members out of the batch.
func (s *sweeper) mark(b *batch, refused []ledger.Refusal) error {
	for _, r := range refused {
		if s.until != nil && r.Reason == ledger.WindowLimit {
			return &Halt{HaltRedis, fmt.Sprintf("%s: a shadow takes windows without limit, and %q is refused one", s.field, clipped([]byte(r.Member))), "report this as a bug"}
		}
		if !b.Refuse([]byte(r.Member), r.Reason) {
			return fmt.Errorf("%s: the standings refuse %q, who isn't in the piece", s.field, clipped([]byte(r.Member)))
		}
	}
	return nil
}

// check asks what would come of a piece until that is known. Errors that pass and a hold
// are waited out; the answer is Fits or Refusing.
func (s *sweeper) check(ctx context.Context, p *ledger.Piece) (ledger.Answer, error) {
	wait := newWait()
	for {
		if ctx.Err() != nil {
			return ledger.Answer{}, context.Cause(ctx) // the next owner checks by itself
		}
		answer, err := s.Standings.Check(s.calls, p)
		switch {
		case err != nil:
			if err := s.failing(ctx, err, wait); err != nil {
				return ledger.Answer{}, err
			}
		case answer.Outcome == ledger.Fits, answer.Outcome == ledger.Refusing:
			s.writing(nil)
			return answer, nil
		case answer.Outcome == ledger.Held:
			if err := s.held(ctx); err != nil {
				return ledger.Answer{}, err
			}
		default:
			return ledger.Answer{}, s.refusal(p, answer)
		}
	}
}

// letter reads the batch again and dead-letters the events of the members that were
// marked since it was last read.
//
// It reads outside of the memory budget, one partition at a time, with a token for it. The
// batch is held meanwhile, and so is bounded what is waited for with it; then the flow
// ends, and all is let go:
//
//	the token                     a look every outagePatience whether anybody wants memory
//	a leader that is away         outagePatience
//	a quota that lets nothing in  throttleStarves
//	the dead-letter topic         no wait at all: the flow ends at the first error
//	its quota                     fetch.MaxThrottle a set of letters, and in all where
//	                              anybody wants the memory, or the token
//
// What is left is work: a quota that lets a response through now and then makes a reading
// as long as the first one was. Each flow gets on by a set of letters at least.
func (s *sweeper) letter(ctx context.Context, b *batch) error {
	if err := s.takeTurn(ctx); err != nil {
		return err
	}
	defer func() { <-s.again }()
	// The worker's own reader goes on meanwhile: nothing of it may be touched.
	s.refused.begin(b.From())
	r := &reader{worker: s.worker, fetcher: s.fetcher(nil), done: &s.refused, blocked: s.writing, idle: newWait(), token: true}
	r.records = recordbatch.Reader{MaxRecord: s.maxResponse, MaxCodec: s.maxCodec}
	defer r.records.Close()
	o := &lettering{reader: r, decoder: event.NewDecoder(s.Events), batch: b, letters: s.newLetters(s.writing)}
	o.letters.once = true
	o.letters.done = &s.refused
	o.letters.patience = fetch.MaxThrottle
	o.letters.wanted = func() bool { return s.memory.Wanted() || s.turns.Load() > 0 }
	if err := o.read(ctx); err != nil {
		return err
	}
	s.writing(nil)
	b.Found()
	return nil
}

// lettering is a second reading of a batch for the events of members that are refused.
type lettering struct {
	reader  *reader
	decoder *event.Decoder // the worker's own is in use by its reader
	letters *deadLetters
	batch   *batch
	event   event.Event
	found   int64
}

// read ends as soon as all of their events are found.
func (o *lettering) read(ctx context.Context) error {
	from, to := o.batch.From(), o.batch.To()
	for from < to && o.found < o.batch.PendingEvents() {
		if o.reader.end.confirmed() {
			return fmt.Errorf("%s: the log ends at offset %d, in the middle of what was read as [%d, %d): %w", o.reader.field, from, o.batch.From(), to, errAgain)
		}
		resp, err := o.reader.fetch(ctx, from)
		if err != nil {
			return err
		}
		err = o.records(ctx, resp.Records, from, resp.Aborted)
		from = o.reader.records.Position()
		resp.Release()
		if !errors.Is(err, io.EOF) {
			return o.reader.failed(err)
		}
	}
	if wanted := o.batch.PendingEvents(); o.found != wanted {
		// Without their dead letters nobody may be taken out.
		return fmt.Errorf("%s: %d events of members who are refused were found again in [%d, %d), and %d were read at first",
			o.reader.field, o.found, o.batch.From(), to, wanted)
	}
	return o.letters.flush(ctx)
}

// records goes through a response up to the batch's end, and ends with io.EOF.
func (o *lettering) records(ctx context.Context, records []byte, from int64, aborted []recordbatch.Aborted) error {
	r := o.reader
	r.records.Reset(records, from, aborted)
	for n := 0; ; n++ {
		if n%lookAfter == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		rec, err := r.records.Next()
		if err != nil {
			return err
		}
		if rec.Offset >= o.batch.To() {
			return io.EOF
		}
		if err := o.one(ctx, rec); err != nil {
			return err
		}
	}
}

func (o *lettering) one(ctx context.Context, rec *recordbatch.Record) error {
	if rec.Value == nil || decode(o.decoder, rec, &o.event) != nil {
		return nil
	}
	why := o.batch.Pending(o.event.User)
	if why == 0 {
		return nil
	}
	if late, err := o.batch.Late(o.event.Time, rec.Time); err != nil || late {
		return nil //nolint:nilerr // a time that no calendar has was dead-lettered as such
	}
	o.found++
	if o.reader.done.has(rec.Offset) {
		return nil
	}
	r := &refusals[why]
	return o.letters.add(ctx, rec, o.decoder.ID(), r.reason,
		fmt.Sprintf("with the events of %q from offset %d to %d %s",
			clipped(o.event.User), o.batch.From(), o.batch.To()-1, r.message(o.reader.Config)))
}

func clipped(id []byte) []byte {
	const most = 48
	return id[:min(len(id), most)]
}
