package ingest

import (
	"context"
	"sync/atomic"

	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ledger"
)

// lane is a sweeper's way to one shard: it alone knows where that shard's ledger should be.
// Lanes go side by side; each is one goroutine's at a time.
//
// A shard that a batch has nothing for isn't written: its ledger lags. What lies between
// where it stands and the end of the batches that are through holds nothing for it, so that
// it may be moved there at any time, as the next piece for it does. A batch of a reading that
// isn't for the shard doesn't count as one: it leaves out what the shard lacks.
type lane struct {
	*partition
	shard     int
	standings Standings
	applier   *applier
	pieces    *fold.Pieces
	pace      *pace
	stats     *Stats
	counts    *ShardStats // of the shard
	own       *rulebook   // of whoever moves the shard
	notes     bool        // the rules are noted beside the ledger: not in a shadow

	at      ledger.Position
	through int64 // the end of the last batch of the shard's that is through
	// stopped: at a piece that is refused, the answer is refused; the position that it expects is expects.
	stopped bool
	refused ledger.Answer
	expects ledger.Position
	by      *rulebook          // of the batch
	noted   ledger.Fingerprint // what the partition is counted by, as the shard has it
}

// note is what goes with a piece by some rules: nothing if it is there. The piece that begins a
// sweep brings it always, for what was read of the shard may be of another past:
//
//	this worker          another, by other rules     Redis
//	                                                 saves itself at 0
//	writes 0 to 1,                                   has this one's text
//	sends 1 to 1..3
//	                                                 goes back to 0: no text
//	                     writes 0 to 1
//	                                                 carries out 1 to 1..3
//
// Without its text nobody else could finish that sweep.
func (l *lane) note(by *rulebook, p *ledger.Piece) *ledger.Note {
	begins := !p.Expected.Sweeping() && p.Next.Sweeping()
	if !l.notes || by == nil || by.id() == 0 || by.id() == l.noted && !begins {
		return nil
	}
	return &by.note
}

// added says that a piece is in.
func (l *lane) added(p *ledger.Piece) {
	l.at = p.Next
	if p.Note != nil {
		l.noted = p.Note.Rules
	}
}

// takes reports whether a batch has anything to be written for the shard, and has it cut.
// Alone, or where it has to come to the very end of the batch, it is written always.
func (l *lane) takes(b *batch, always bool) bool {
	if !b.For(l.shard, l.at) {
		return false
	}
	l.by = b.by
	l.pieces.Reset(b.Batch, l.Partition, l.shard, l.at)
	return always || l.at.Sweeping() || l.pieces.Any()
}

// sweep applies what the batch has for the shard, piece by piece, until it is through or a
// piece is refused. It stops between two pieces, never within one.
func (l *lane) sweep(ctx context.Context, taken *atomic.Int64) error {
	l.stopped, l.refused = false, ledger.Answer{}
	for {
		piece, events, ok := l.pieces.Next(l.pace.width())
		if !ok {
			return nil
		}
		piece.Note = l.note(l.by, piece)
		width := piece.Width()
		answer, took, err := l.applier.apply(ctx, piece)
		if err != nil {
			return err
		}
		if answer.Outcome == ledger.Refusing {
			l.stopped, l.refused, l.expects = true, answer, piece.Expected
			return nil
		}
		l.pace.observe(width, took)
		l.stats.applied(events, l.pieces.Refused(), width, took)
		l.counts.applied(width, took)
		l.added(piece)
		taken.Add(events)
		if ctx.Err() != nil && l.at.Sweeping() {
			return context.Cause(ctx) // the next owner goes on from here
		}
	}
}

// look compares the ledger with where it should stand, or moves it there if it lags. One that
// nothing is read for stands where it stands.
func (l *lane) look(ctx context.Context) error {
	switch {
	case l.at == beyond:
		return nil
	case l.lags():
		return l.move(ctx)
	}
	found, err := l.standings.Position(ctx, l.Partition)
	if err != nil {
		return err
	}
	if found != l.at.String() {
		return &movedError{l.field + l.applier.shard, l.at, found}
	}
	return nil
}

// lags reports whether the shard stands before the end of the batches that are through,
// with nothing in between.
func (l *lane) lags() bool { return !l.at.Sweeping() && l.at.From < l.through }

// counted is the offset before which every event of the shard's counts, whether or not its
// ledger says so yet.
func (l *lane) counted() int64 {
	if l.at.Sweeping() {
		return l.at.From
	}
	return max(l.at.From, l.through)
}

// move has the ledger be where the batches that are through end.
func (l *lane) move(ctx context.Context) error {
	piece := &ledger.Piece{Partition: l.Partition, Expected: l.at, Next: ledger.At(l.through)}
	piece.Note = l.note(l.own, piece)
	if _, _, err := l.applier.apply(ctx, piece); err != nil {
		return err
	}
	l.added(piece)
	return nil
}
