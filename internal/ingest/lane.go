package ingest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/ingest/rulebook"
	"github.com/standings/standings/internal/ingest/shards"
	"github.com/standings/standings/internal/ingest/source"
	"github.com/standings/standings/internal/ledger"
)

// lane applies a sweeper's batches to one shard, and tracks the expected position of that shard's ledger. The
// lanes of a sweeper run concurrently; only one goroutine uses a lane at a time.
//
// If a batch has no changes for the shard, nothing is written and the shard's ledger lags. Between its position
// and the end of the applied batches there is nothing for the shard, so the ledger may be moved there at any
// time; the shard's next piece does so as well. A batch whose reading isn't for the shard doesn't count as
// applied there: it omits events that the shard lacks.
type lane struct {
	*source.Handle
	shard     int
	standings shards.Standings
	applier   *applier
	pieces    *fold.Pieces
	pace      *pace
	stats     *counts.Stats
	counts    *counts.Shard  // of the shard
	own       *rulebook.Book // the process's own rules, used when the lane moves the ledger
	notes     bool           // rules are noted next to the ledger: true except in a shadow

	at      ledger.Position
	through int64 // the end of the shard's last applied batch
	refusal
	by    *rulebook.Book     // of the batch
	noted ledger.Fingerprint // the rules that the shard has noted for the partition
}

// refusal is where a lane has stopped: at a piece with members that the standings refuse.
type refusal struct {
	stopped bool            // a piece was refused
	refused ledger.Answer   // the answer
	expects ledger.Position // the position that the piece expects
}

// note returns the note of rules that is sent with a piece; nil if the shard has it already. The piece that
// starts a sweep always carries it, because Redis may have rolled back since the shard's notes were read:
//
//	this worker          another, with other rules   Redis
//	                                                 saves a snapshot at 0
//	writes 0 to 1,                                   has this worker's text
//	sends 1 to 1..3
//	                                                 rolls back to 0: no text
//	                     writes 0 to 1
//	                                                 executes 1 to 1..3
//
// Without the text, no other worker could finish that sweep.
func (l *lane) note(by *rulebook.Book, p *ledger.Piece) *ledger.Note {
	begins := !p.Expected.Sweeping() && p.Next.Sweeping()
	if !l.notes || by == nil || by.ID() == 0 || by.ID() == l.noted && !begins {
		return nil
	}
	return &by.Note
}

// added records that a piece was applied.
func (l *lane) added(p *ledger.Piece) {
	l.at = p.Next
	if p.Note != nil {
		l.noted = p.Note.Rules
	}
}

// takes reports whether a batch must be swept for the shard, and starts to cut its pieces. With always, it must
// be swept even if it has no changes, so that the ledger reaches the end of the batch.
func (l *lane) takes(b *batch, always bool) bool {
	if !b.For(l.shard, l.at) {
		return false
	}
	l.by = b.by
	l.pieces.Reset(b.Batch, l.Partition, l.shard, l.at)
	return always || l.at.Sweeping() || l.pieces.Any()
}

// sweep applies the batch's pieces for the shard, until all are applied or one is refused. It stops between two
// pieces, never within one.
func (l *lane) sweep(ctx context.Context, taken *atomic.Int64) error {
	l.refusal = refusal{}
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
			l.refusal = refusal{true, answer, piece.Expected}
			return nil
		}
		l.pace.observe(width, took)
		l.stats.CountPiece(events, l.pieces.Refused(), width, took)
		l.counts.CountPiece(width, took)
		l.added(piece)
		taken.Add(events)
		if ctx.Err() != nil && l.at.Sweeping() {
			return context.Cause(ctx) // the next owner continues from here
		}
	}
}

// look compares the ledger with its expected position, or moves it there if it lags. It does nothing if nothing
// is read for the shard.
func (l *lane) look(ctx context.Context) error {
	switch {
	case l.at == replay.Beyond:
		return nil
	case l.lags():
		return l.move(ctx)
	}
	found, err := l.standings.Position(ctx, l.Partition)
	if err != nil {
		return err
	}
	if found != l.at.String() {
		return &movedError{l.Field + l.applier.shard, l.at, found}
	}
	return nil
}

// lags reports whether the ledger is before the end of the applied batches, with nothing for the shard in
// between.
func (l *lane) lags() bool { return !l.at.Sweeping() && l.at.From < l.through }

// counted returns the offset before which every event of the shard counts, even if the ledger lags.
func (l *lane) counted() int64 {
	if l.at.Sweeping() {
		return l.at.From
	}
	return max(l.at.From, l.through)
}

// move moves the ledger to the end of the applied batches.
func (l *lane) move(ctx context.Context) error {
	piece := &ledger.Piece{Partition: l.Partition, Expected: l.at, Next: ledger.At(l.through)}
	piece.Note = l.note(l.own, piece)
	if _, _, err := l.applier.apply(ctx, piece); err != nil {
		return err
	}
	l.added(piece)
	return nil
}

// pace adapts the number of member-windows in a call, so that a call takes about the target time. Redis
// executes one call at a time: a long call delays all other clients, and short calls have more overhead.
type pace struct {
	target time.Duration
	cost   float64 // ns per member-window, as measured recently
}

const (
	minWidth = 32
	maxWidth = 4000
	// firstCost is the assumed cost of a member-window before any measurement: with the default target of 5 ms,
	// the first piece has 500 member-windows.
	firstCost = 10 * time.Microsecond
)

// width returns the size of the next piece, in member-windows.
func (p *pace) width() int {
	cost := p.cost
	if cost == 0 {
		cost = float64(firstCost)
	}
	return int(min(max(float64(p.target)/cost, minWidth), maxWidth))
}

// observe updates the cost from the duration of a call. A small call consists mostly of its round trip, so it
// only shows that the cost of a member-window is no higher than that. Without that, pieces that became small in
// a slow period would stay small.
func (p *pace) observe(width int, took time.Duration) {
	cost := float64(took) / float64(max(width, 1))
	if width < minWidth && (width == 0 || cost >= p.cost) {
		return
	}
	if p.cost == 0 {
		p.cost = cost
		return
	}
	// A moving average, in which a call counts at most four times the average: one pause of the machine reduces
	// the pieces only a little and briefly, ten pauses reduce them lastingly.
	p.cost += 0.2 * (min(cost, 4*p.cost) - p.cost)
}
