package ranking

import (
	"context"
	"fmt"
	"time"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
)

// Apply adds a piece in one atomic call, or writes nothing and answers why. An
// error may have an unknown outcome: the piece can be sent again as it is, and a
// ledger that already stands at its next position is the answer Applied.
//
// The second result is the time that the call took, without waiting for its turn.
func (s *Store) Apply(ctx context.Context, p *ledger.Piece) (ledger.Answer, time.Duration, error) {
	select {
	case s.inFlight <- struct{}{}:
	case <-ctx.Done():
		return ledger.Answer{}, 0, context.Cause(ctx)
	}
	defer func() { <-s.inFlight }()
	e := <-s.encoders
	defer func() { s.encoders <- e }()

	keys, err := e.encode(s, p)
	if err != nil {
		return ledger.Answer{}, 0, fmt.Errorf("apply %s/%d [%v, %v): %w", p.Topic, p.Partition, p.Expected, p.Next, err)
	}
	began := time.Now()
	reply, err := s.run(ctx, applyScript, keys, e.args)
	took := time.Since(began)
	if err != nil {
		return ledger.Answer{}, took, fmt.Errorf("apply %s/%d [%v, %v): %w", p.Topic, p.Partition, p.Expected, p.Next, err)
	}
	answer, err := answer(reply, p.Next.String())
	return answer, took, err
}

// encoder holds the arguments of a call, reused from call to call. Ids, points
// and times are passed by pointers into the piece: nothing is allocated for a
// member.
type encoder struct {
	args []any
}

// blob is a member's id as go-redis takes it by pointer.
type blob []byte

// MarshalBinary is the id itself.
func (b *blob) MarshalBinary() ([]byte, error) { return *b, nil }

func (e *encoder) encode(s *Store, p *ledger.Piece) (keys int, err error) {
	e.args = append(e.args[:0], nil, nil, nil,
		s.keys.ledger(), s.keys.schema(), s.keys.hold(), s.keys.windows())
	for i := range p.Windows {
		e.args = append(e.args, s.keys.window(&p.Windows[i]))
	}
	keys = len(e.args) - 3
	e.args = append(e.args, ledger.Field(p.Topic, p.Partition), p.Expected.String(), p.Next.String(), s.schema)
	for i := range p.Windows {
		w := &p.Windows[i]
		rule, ok := s.periods[w.Period]
		if !ok {
			return 0, fmt.Errorf("no period %q is configured", w.Period)
		}
		l := &rule.Layout
		kind := "readable"
		if l.Kind == codec.Wide {
			kind = "wide"
		}
		e.args = append(e.args, w.Listing(), w.Start, w.End, rule.Retention.Milliseconds(), kind, l.K, l.Tick, l.Max)
	}
	for i := range p.Groups {
		g := &p.Groups[i]
		e.args = append(e.args, len(g.Windows))
		for _, w := range g.Windows {
			e.args = append(e.args, w+1)
		}
		e.args = append(e.args, len(g.Members))
		for j := range g.Members {
			e.args = append(e.args, (*blob)(&g.Members[j].ID))
		}
		for j := range g.Members {
			e.args = append(e.args, &g.Members[j].Points)
		}
		for j := range g.Members {
			e.args = append(e.args, &g.Members[j].Time)
		}
	}
	return keys, nil
}

var outcomes = map[string]ledger.Outcome{
	"applied": ledger.Applied, "moved": ledger.Moved, "held": ledger.Held, "overflow": ledger.Overflow,
	"schema": ledger.OtherSchema, "lost": ledger.Lost, "unlisted": ledger.Unlisted,
	"bounds": ledger.OtherBounds, "foreign": ledger.Foreign,
}

// answer reads a reply of apply.lua.
func answer(reply []any, next string) (ledger.Answer, error) {
	words, err := texts(reply)
	if err != nil {
		return ledger.Answer{}, err
	}
	if len(words) == 0 {
		return ledger.Answer{}, fmt.Errorf("an empty reply")
	}
	outcome, ok := outcomes[words[0]]
	if !ok {
		return ledger.Answer{}, fmt.Errorf("an unexpected reply: %q", words[0])
	}
	a := ledger.Answer{Outcome: outcome}
	word := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	switch outcome {
	case ledger.Moved:
		// Sent again after a timeout: the first call was executed after all.
		if a.Found = word(1); a.Found == next {
			return ledger.Answer{Outcome: ledger.Applied}, nil
		}
	case ledger.OtherSchema:
		a.Found = word(1)
	case ledger.OtherBounds:
		a.Window, a.Found = word(1), word(2)
	case ledger.Foreign:
		a.Window, a.Members = word(1), words[2:]
	case ledger.Lost, ledger.Unlisted:
		a.Window = word(1)
	case ledger.Overflow:
		a.Members = words[1:]
	}
	return a, nil
}
