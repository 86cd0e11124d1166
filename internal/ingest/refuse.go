package ingest

import (
	"context"
	"fmt"

	"github.com/standings/standings/internal/ingest/health"
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

// Each shard sweeps on its own, and stops at a piece that names somebody: by the time that
// all have stopped, or are through, those that stopped are gone through in turn, and all
// who were marked are looked for in one reading.

// refuser takes members out of a sweeper's batch, in its goroutine.
type refuser struct {
	*partition
	refused refusedEvents
}

// refusedEvents is what becomes of the events of members who are refused.
type refusedEvents interface {
	// accept returns an error where that mustn't happen.
	accept(r ledger.Refusal) error
	// write has them all dead-lettered.
	write(ctx context.Context, b *batch) error
}

// deadLettersOfOthers is for a replay: whoever counted what is replayed has written the dead
// letters.
type deadLettersOfOthers struct{ *partition }

func (l deadLettersOfOthers) accept(r ledger.Refusal) error {
	if r.Reason == ledger.WindowLimit {
		return &health.Halt{Reason: health.HaltRedis, What: fmt.Sprintf("%s: a shadow takes windows without limit, and %q is refused one", l.field, clipped([]byte(r.Member))), Remedy: "report this as a bug"}
	}
	return nil
}

func (deadLettersOfOthers) write(context.Context, *batch) error { return nil }

// refuse takes the members out of the batch that the shards' answers name, and all those of
// the pieces behind. It returns the lanes that stopped, which go on from there.
func (r *refuser) refuse(ctx context.Context, b *batch, lanes []*lane) ([]*lane, error) {
	b.beyond = nil
	var stopped []*lane
	for _, l := range lanes {
		if !l.stopped {
			continue
		}
		if err := r.rest(ctx, b, l); err != nil {
			return nil, err
		}
		stopped = append(stopped, l)
	}
	if len(stopped) == 0 {
		return nil, nil
	}
	if err := r.refused.write(ctx, b); err != nil {
		return nil, err
	}
	b.Found()
	b.beyond = nil
	return stopped, nil
}

// rest marks the members that a piece's answer names, and those of the pieces behind it.
func (r *refuser) rest(ctx context.Context, b *batch, l *lane) error {
	if err := r.mark(b, &l.refused); err != nil {
		return err
	}
	for {
		piece, _, ok := l.pieces.Next(l.pace.width())
		if !ok {
			break
		}
		// No piece is in yet, so all of them are checked where the first would begin.
		piece.Expected = l.expects
		answer, err := l.applier.check(ctx, piece)
		if err != nil {
			return err
		}
		if err := r.mark(b, &answer); err != nil {
			return err
		}
	}
	l.pieces.Rewind(l.expects) // the next piece takes the place of that one
	return nil
}

// mark takes the members that an answer names out of the batch.
func (r *refuser) mark(b *batch, answer *ledger.Answer) error {
	for _, one := range answer.Refused {
		if err := r.refused.accept(one); err != nil {
			return err
		}
		if !b.Refuse([]byte(one.Member), one.Reason) {
			return fmt.Errorf("%s: the standings refuse %q, who isn't in the piece", r.field, clipped([]byte(one.Member)))
		}
	}
	b.keepBeyond(answer.Beyond)
	return nil
}

func clipped(id []byte) []byte {
	const most = 48
	return id[:min(len(id), most)]
}
