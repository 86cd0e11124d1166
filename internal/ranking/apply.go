package ranking

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/lua"
	"github.com/standings/standings/internal/redisconn"
)

// Apply adds a piece in one atomic call. If a check fails it writes nothing, and the answer gives the
// reason. After an error the outcome may be unknown. The caller can then send the same piece again: if the
// ledger is already at the piece's next position, the answer is Applied.
//
// The second result is the duration of the call itself. It excludes the time that the call waited here for
// its turn. A server executes one call at a time, so while it has two of our calls, of this shard or of
// another one, each call counts only its share of that time.
func (s *Store) Apply(ctx context.Context, p *ledger.Piece) (ledger.Answer, time.Duration, error) {
	a, took, err := s.send(ctx, p, p.Next.String())
	if a.Outcome == ledger.Moved && a.Found == p.Next.String() {
		// An earlier call for this piece timed out, but Redis executed it.
		a = ledger.Answer{Outcome: ledger.Applied}
	}
	return a, took, err
}

// Check returns the answer that Apply would return, with Fits in place of Applied, and writes nothing. The
// ledger must be at the piece's expected position, but the piece may be any part of the batch.
func (s *Store) Check(ctx context.Context, p *ledger.Piece) (ledger.Answer, error) {
	a, _, err := s.send(ctx, p, "")
	return a, err
}

// send calls the script for a piece. With an empty next the script only checks the piece.
func (s *Store) send(ctx context.Context, p *ledger.Piece, next string) (ledger.Answer, time.Duration, error) {
	var e *encoder
	select {
	case e = <-s.encoders:
	case <-ctx.Done():
		return ledger.Answer{}, 0, fmt.Errorf("%s: wait for its turn: %w", doing(p), context.Cause(ctx))
	}
	defer func() { e.release(); s.encoders <- e }()

	keys, err := e.encode(s, p, next)
	if err != nil {
		return ledger.Answer{}, 0, fmt.Errorf("%s: %w", doing(p), err)
	}
	reply, took, err := s.call(ctx, keys, e.args)
	if err == nil && len(reply) == 1 && reply[0] == "boards" {
		var have string
		if have, err = s.haveWindows(ctx, p.Windows); err == nil {
			e.args[head+keys+windowsAt] = s.windowsArg + " " + have
			reply, took, err = s.call(ctx, keys, e.args)
		}
	}
	if err != nil {
		return ledger.Answer{}, took, fmt.Errorf("%s: %w", doing(p), err)
	}
	a, err := answer(reply)
	if err != nil {
		return ledger.Answer{}, took, fmt.Errorf("%s: %w", doing(p), err)
	}
	return a, took, nil
}

// call calls the script and returns how long that took.
func (s *Store) call(ctx context.Context, keys int, args []any) (reply []any, took time.Duration, err error) {
	began := time.Now()
	reply, err = s.evaluate(redisconn.InTurn(ctx, &took), lua.Apply, keys, args)
	if took == 0 { // the client isn't from redisconn
		took = time.Since(began)
	}
	return reply, took, err
}

// windowsAt is the index of windowsArg among the arguments that follow the keys.
const windowsAt = 5

func doing(p *ledger.Piece) string {
	return fmt.Sprintf("apply %v from %v to %v", p.Partition, p.Expected, p.Next)
}

// encoder holds the arguments of a call and is reused for later calls. It passes ids as pointers into the
// piece, and the points and times of a group as one text each, so that it allocates nothing for a member.
type encoder struct {
	args  []any
	lists []byte // JSON lists of all groups, concatenated
	list  int    // start of the list that is being written
	named bool   // members have names
}

// blob is a member's id or name. go-redis accepts a pointer to it without a copy.
type blob []byte

// MarshalBinary returns the text unchanged.
func (b *blob) MarshalBinary() ([]byte, error) { return *b, nil }

// Capacity that an encoder keeps between calls. It suffices for a usual piece; a piece with thousands of
// windows needs ten times as much.
const (
	argsKept  = 8 << 10
	listsKept = 128 << 10
)

// release drops the references in the arguments, and buffers that are larger than usual.
func (e *encoder) release() {
	clear(e.args)
	if cap(e.args) > argsKept {
		e.args = nil
	}
	if cap(e.lists) > listsKept {
		e.lists = nil
	}
}

func (e *encoder) encode(s *Store, p *ledger.Piece, next string) (keys int, err error) {
	e.lists = e.lists[:0]
	e.args = append(e.args[:0], make([]any, head)...)
	e.args = append(e.args, s.firstKeys...)
	for i := range p.Windows {
		key, hidden := s.keys.Both(p.Windows[i].Listing())
		e.args = append(e.args, key, hidden)
	}
	e.named = slices.ContainsFunc(p.Groups, func(g ledger.Group) bool { return len(g.Names) > 0 })
	noted, beside := p.Note != nil && s.lease == "", ""
	if noted {
		e.args, beside = append(e.args, s.keys.Rules()), "rules"
	}
	if e.named {
		e.args, beside = append(e.args, s.keys.Names()), strings.TrimPrefix(beside+" names", " ")
	}
	keys = len(e.args) - head
	e.args = append(e.args, p.Partition.String(), p.Expected.String(), next, s.text(), s.lease, s.windowsArg, beside, len(p.Without))
	for _, name := range p.Without {
		e.args = append(e.args, name)
	}
	if noted {
		e.args = append(e.args, p.Note.Rules.String(), p.Note.Text)
	}
	for i := range p.Windows {
		if err := e.window(s, &p.Windows[i]); err != nil {
			return 0, err
		}
	}
	for i := range p.Groups {
		if err := e.group(s, &p.Groups[i], p.Windows); err != nil {
			return 0, err
		}
	}
	return keys, nil
}

func (e *encoder) window(s *Store, w *ledger.Window) error {
	rule, ok := s.periods[w.Period]
	if !ok {
		return Faultf("no period %q is configured", w.Period)
	}
	l := &rule.Layout
	if r := s.ruled(w.Board); r != nil {
		if err := e.ruledWindow(r, w, rule.Retention); err != nil {
			return err
		}
		e.args = append(e.args, s.bordersArg(w))
		return nil
	}
	if ticks := l.Ticks(w.Start, w.End, w.Start); ticks < 0 || ticks >= 1<<l.K {
		return Faultf("window %s [%d, %d) ms doesn't fit its layout (%v)", w.Listing(), w.Start, w.End, l)
	}
	e.args = append(append(append(e.args, w.Start, w.End), s.layoutArgs[w.Period]...), s.bordersArg(w))
	return nil
}

func kindName(k codec.Kind) string {
	if k == codec.Wide {
		return "wide"
	}
	return "readable"
}

func (e *encoder) group(s *Store, g *ledger.Group, windows []ledger.Window) error {
	e.args = append(e.args, len(g.Windows))
	for _, w := range g.Windows {
		e.args = append(e.args, w+1)
	}
	e.args = append(e.args, len(g.Members))

	latest := int64(ledger.NoTime)
	r, err := s.ruleOf(g, windows)
	if err != nil {
		return err
	}
	e.open()
	if r != nil {
		e.digits(&r.rule, g.Members)
	} else {
		for i := range g.Members {
			e.lists = append(strconv.AppendInt(e.lists, g.Members[i].Points, 10), ',')
		}
	}
	e.close()
	e.open()
	for i := range g.Members {
		latest = max(latest, g.Members[i].Time)
		e.lists = append(strconv.AppendInt(e.lists, g.Members[i].Time, 10), ',')
	}
	e.close()
	for i := range g.Members {
		e.args = append(e.args, (*blob)(&g.Members[i].ID))
	}
	if e.named {
		if len(g.Names) != len(g.Members) {
			return Faultf("%d members have %d names", len(g.Members), len(g.Names))
		}
		e.open()
		for i := range g.Names {
			e.lists = append(strconv.AppendInt(e.lists, g.Names[i].Time, 10), ',')
		}
		e.close()
		for i := range g.Names {
			e.args = append(e.args, (*blob)(&g.Names[i].Text))
		}
	}
	for _, w := range g.Windows {
		if latest >= windows[w].End {
			return Faultf("window %s ends at %d ms, and a member's time is %d", windows[w].Listing(), windows[w].End, latest)
		}
	}
	return nil
}

// open begins a JSON list. close ends the list and appends it to the arguments. A finished list stays valid
// if the buffer is reallocated for the next one.
func (e *encoder) open() {
	e.list = len(e.lists)
	e.lists = append(e.lists, '[')
}

func (e *encoder) close() {
	if last := len(e.lists) - 1; e.lists[last] == ',' {
		e.lists = e.lists[:last]
	}
	e.lists = append(e.lists, ']')
	e.args = append(e.args, e.lists[e.list:])
}

var outcomes = map[string]ledger.Outcome{
	"applied": ledger.Applied, "moved": ledger.Moved, "held": ledger.Held, "refused": ledger.Refusing,
	"schema": ledger.OtherSchema, "lost": ledger.Lost, "unlisted": ledger.Unlisted,
	"bounds": ledger.OtherBounds, "foreign": ledger.Foreign, "fits": ledger.Fits,
	"rule": ledger.OtherRule, "sealed": ledger.Sealed, "unsealed": ledger.Unsealed,
}

var reasons = map[string]ledger.Reason{"overflow": ledger.Overflow, "window_limit": ledger.WindowLimit}

// answer parses a reply of apply.lua.
func answer(reply []any) (ledger.Answer, error) {
	words, err := Texts(reply)
	if err != nil {
		return ledger.Answer{}, err
	}
	if len(words) == 0 {
		return ledger.Answer{}, Faultf("an empty reply")
	}
	outcome, ok := outcomes[words[0]]
	if !ok {
		return ledger.Answer{}, Faultf("an unexpected reply: %q", words[0])
	}
	a := ledger.Answer{Outcome: outcome}
	rest := append(words[1:], "", "")
	switch outcome {
	case ledger.Moved, ledger.OtherSchema:
		a.Found = rest[0]
	case ledger.OtherBounds, ledger.OtherRule:
		a.Window, a.Found = rest[0], rest[1]
		if l, err := ParseListing(a.Window, a.Found); err == nil && outcome == ledger.OtherBounds {
			a.Start, a.End = l.Start, l.End
		}
	case ledger.Foreign:
		a.Window, a.Members = rest[0], rest[1:2]
	case ledger.Lost, ledger.Unlisted:
		a.Window = rest[0]
	case ledger.Sealed, ledger.Unsealed:
		if len(words) == 1 {
			return ledger.Answer{}, Faultf("an unexpected reply: %s, and no window", words[0])
		}
		a.Windows = words[1:]
	case ledger.Refusing:
		if len(words) == 1 || len(words)%3 != 1 {
			return ledger.Answer{}, Faultf("an unexpected reply: %q of %d words", words[0], len(words))
		}
		for one := range slices.Chunk(words[1:], 3) {
			reason, ok := reasons[one[0]]
			if !ok {
				return ledger.Answer{}, Faultf("an unexpected reply: %q refused for %q", one[1], one[0])
			}
			a.Refused = append(a.Refused, ledger.Refusal{Member: one[1], Reason: reason})
			if one[2] == "" {
				continue
			}
			beyond, ok := beyondField(one[2])
			if !ok {
				return ledger.Answer{}, Faultf("an unexpected reply: %q refused for %q at %q", one[1], one[0], one[2])
			}
			beyond.Member = one[1]
			a.Beyond = append(a.Beyond, beyond)
		}
	}
	return a, nil
}

// beyondField parses where a field would leave its range: the window and, if they are known, the field's
// number from 1 and its digit.
func beyondField(where string) (b ledger.Beyond, ok bool) {
	words := strings.Split(where, " ")
	window := strings.SplitN(words[0], ":", 3)
	if len(window) != 3 || len(words) != 1 && len(words) != 3 {
		return b, false
	}
	b.Window = ledger.Window{Board: window[0], Period: window[1], Name: window[2]}
	if len(words) == 1 {
		return b, true
	}
	field, badField := strconv.Atoi(words[1])
	digit, badDigit := strconv.ParseInt(words[2], 10, 64)
	b.Field, b.Digit = field, digit
	return b, badField == nil && badDigit == nil && field > 0 && field <= codec.MaxFields
}
