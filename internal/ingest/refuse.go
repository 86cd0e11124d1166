package ingest

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/source"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/rules"
)

// This file handles members that the standings refuse.
//
// All events in the batch of a refused member become dead letters. Only the log has these events, since the
// fold keeps sums. Reading the batch again for every piece with refused members would cost pieces times events.
// So the first refusal in a batch triggers a check of all remaining pieces:
//
// 1. the members that the piece's answer names are marked in the batch;
// 2. every later piece is checked, with the ledger where it is, and the members
//    that those answers name are marked too;
// 3. [from, to) is read again, once, and the events of all marked members are
//    dead-lettered;
// 4. the sweep continues at that piece, cut again without the marked members.
//
// Another partition may change the same standings meanwhile. If a member would leave the range only after that,
// a later piece names the member, and another round removes it. Each round removes at least one member, so this
// ends. A member that would fit again stays refused, because its dead letters are written.

// Each shard sweeps on its own, and stops at a piece with refused members. When all shards have stopped or
// finished, the remaining pieces of the stopped shards are checked one shard after another. Then one reading
// finds the events of all marked members.

// refuser removes refused members from a sweeper's batch. It runs in the sweeper's goroutine.
type refuser struct {
	*source.Handle
	refused refusedEvents
}

// refusedEvents handles the events of refused members.
type refusedEvents interface {
	// accept returns an error if this refusal must not happen.
	accept(r ledger.Refusal) error
	// write writes dead letters for all events of the marked members.
	write(ctx context.Context, b *batch) error
}

// deadLettersOfOthers is for a replay: the consumer that counted the replayed events has written their dead
// letters.
type deadLettersOfOthers struct{ *source.Handle }

func (l deadLettersOfOthers) accept(r ledger.Refusal) error {
	if r.Reason == ledger.WindowLimit {
		return &health.Halt{Reason: health.HaltRedis, What: fmt.Sprintf("%s: a shadow takes windows without limit, and %q is refused one", l.Field, clipped([]byte(r.Member))), Remedy: "report this as a bug"}
	}
	return nil
}

func (deadLettersOfOthers) write(context.Context, *batch) error { return nil }

// refuse removes from the batch the members that the shards' answers name, and those that the checks of later
// pieces name. It returns the lanes that stopped, which continue from there.
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

// rest marks the members that a piece's answer names, and those that the checks of the later pieces name.
func (r *refuser) rest(ctx context.Context, b *batch, l *lane) error {
	if err := r.mark(b, &l.refused); err != nil {
		return err
	}
	for {
		piece, _, ok := l.pieces.Next(l.pace.width())
		if !ok {
			break
		}
		// No piece was applied since, so all are checked at the position where the first starts.
		piece.Expected = l.expects
		answer, err := l.applier.check(ctx, piece)
		if err != nil {
			return err
		}
		if err := r.mark(b, &answer); err != nil {
			return err
		}
	}
	l.pieces.Rewind(l.expects) // the next piece starts where the refused one did
	return nil
}

// mark marks the members that an answer names as refused in the batch.
func (r *refuser) mark(b *batch, answer *ledger.Answer) error {
	for _, one := range answer.Refused {
		if err := r.refused.accept(one); err != nil {
			return err
		}
		if !b.Refuse([]byte(one.Member), one.Reason) {
			return fmt.Errorf("%s: the standings refuse %q, who isn't in the piece", r.Field, clipped([]byte(one.Member)))
		}
	}
	b.keepBeyond(answer.Beyond)
	return nil
}

func clipped(id []byte) []byte {
	const most = 48
	return id[:min(len(id), most)]
}

// maxBeyond is the maximum number of refused members of a batch whose out-of-range field is remembered until
// their dead letters are written: this memory is outside of the budget. The dead letters of the other members
// name no field.
const maxBeyond = 1000

// maxMessage is the maximum length of a dead letter's message, in bytes.
const maxMessage = 200

// keepBeyond remembers which members of an answer would leave the range of a field.
func (b *batch) keepBeyond(all []ledger.Beyond) {
	for _, one := range all {
		if len(b.beyond) == maxBeyond {
			return
		}
		if b.beyond == nil {
			b.beyond = map[string]ledger.Beyond{}
		}
		b.beyond[one.Member] = one
	}
}

// refusalMessage returns the message for the dead letters of a refused member: one line of at most maxMessage
// bytes, with the most important facts first.
func (b *batch) refusalMessage(member []byte, reason ledger.Reason) string {
	text := fmt.Sprintf("%s with the events of %q from offset %d to %d", b.why(member, reason), clipped(member), b.From(), b.To()-1)
	for i := min(len(text), maxMessage); ; i-- {
		if i == len(text) || utf8.RuneStart(text[i]) {
			return text[:i]
		}
	}
}

// why returns the reason for which a member is refused.
func (b *batch) why(member []byte, reason ledger.Reason) string {
	if reason == ledger.WindowLimit {
		return "a window would be opened beyond max_windows, or in its last tenth on a board that has none"
	}
	of := &b.by.Events
	if at, ok := b.beyond[string(member)]; ok {
		if rule := of.Others.Of(at.Window.Board); rule != nil && at.Field <= rule.Fields.Len() {
			return whichField(&at, rule)
		}
	}
	text := fmt.Sprintf("a standing would leave ±%d points", of.MaxPoints)
	if len(of.Others) > 0 {
		text += ", or the range of a field"
	}
	return text
}

// whichField names the board, the field, the value that it would have, and its max.
func whichField(at *ledger.Beyond, rule *rules.Rule) string {
	board, window := at.Window.Board, at.Window.Period+" "+at.Window.Name
	if at.Field == 0 {
		var fields []string
		for _, f := range rule.Fields.List() {
			fields = append(fields, fmt.Sprintf("%s to %d", f.Name, f.Max))
		}
		return fmt.Sprintf("a field of board %s (%s) would leave its range in %s", board, strings.Join(fields, ", "), window)
	}
	field := rule.Fields.At(at.Field - 1)
	var tuple rules.Tuple
	tuple[at.Field-1] = at.Digit
	limits := fmt.Sprintf("0 to its max of %d", field.Max)
	if field.Signed {
		limits = fmt.Sprintf("its max of ±%d", field.Max)
	}
	return fmt.Sprintf("%s of board %s would be %d, outside of %s, in %s", field.Name, board, rule.Fields.Digits(tuple)[at.Field-1], limits, window)
}
