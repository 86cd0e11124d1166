package ingest

import (
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/ledger"
)

// movedAway counts a move, and tells of it.
func (w *worker) movedAway(err error) {
	w.Stats.moved(err)
	w.log.Info("the ledger has moved: going on from what it says", zap.Error(err))
	w.stood, w.done, w.refused = nil, lettered{}, lettered{}
}

// found compares what the ledger holds with where the flow before left it: what
// happened in between, as while Redis was away, nobody was there to see.
func (w *worker) found(text string) {
	if w.stood != nil && text != w.stood.String() {
		w.movedAway(&movedError{w.field, *w.stood, text})
	}
}

// errMoved says that the ledger was found elsewhere: all that was folded is void.
var errMoved = errors.New("the ledger has moved")

// movedError is an errMoved, and says from where to where.
type movedError struct {
	field string
	from  ledger.Position
	to    string // the ledger's text
}

func (e *movedError) Error() string {
	return fmt.Sprintf("%s: %v from %v to %q", e.field, errMoved, e.from, e.to)
}

func (e *movedError) Unwrap() error { return errMoved }

// Causes of a move, as far as the ledger tells.
const (
	// MoveAdvanced: it stands further on. Another owner was here, or still is; or a
	// call of our own was executed whose answer never came.
	MoveAdvanced = "advanced"
	// MoveRolledBack: it stands further back. Redis has lost what it had last: by a
	// failover, or a backup that was restored.
	MoveRolledBack = "rolled_back"
	// MoveEmptied: nothing stands there any more.
	MoveEmptied = "emptied"
	// MoveTorn: a piece was written in part.
	MoveTorn = "torn"
	// MoveUnreadable: it holds what isn't a position.
	MoveUnreadable = "unreadable"
)

var moveCauses = [...]string{MoveAdvanced, MoveRolledBack, MoveEmptied, MoveTorn, MoveUnreadable}

// MoveCauses lists all of them.
func MoveCauses() []string { return moveCauses[:] }

// cause compares the two.
func (e *movedError) cause() string {
	found, err := ledger.Parse(e.to)
	switch {
	case e.to == "":
		return MoveEmptied
	case errors.Is(err, ledger.ErrTorn):
		return MoveTorn
	case err != nil:
		return MoveUnreadable
	case ahead(found, e.from):
		return MoveAdvanced
	}
	return MoveRolledBack
}

// ahead reports whether more counts at one position than at another. A sweep stands
// between its two ends.
func ahead(a, b ledger.Position) bool {
	if a.From != b.From {
		return a.From > b.From
	}
	return a.Hash > b.Hash
}

// Moves is how often the ledger was found elsewhere, for a cause.
func (s *Stats) Moves(cause string) int64 {
	for i, known := range moveCauses {
		if cause == known {
			return s.moves[i].Load()
		}
	}
	panic("ingest: no such cause of a move: " + cause)
}

// AllMoves is how often the ledger was found elsewhere.
func (s *Stats) AllMoves() int64 {
	n := int64(0)
	for i := range s.moves {
		n += s.moves[i].Load()
	}
	return n
}

// moved counts one.
func (s *Stats) moved(err error) {
	cause := MoveEmptied // of the schema alone
	if e, ok := errors.AsType[*movedError](err); ok {
		cause = e.cause()
	}
	for i, known := range moveCauses {
		if cause == known {
			s.moves[i].Add(1)
		}
	}
}
