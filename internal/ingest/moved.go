package ingest

import (
	"errors"
	"fmt"

	"github.com/standings/standings/internal/ledger"
)

// errMoved reports that the ledger is not where it was expected: everything folded is void.
var errMoved = errors.New("the ledger has moved")

// movedError is an errMoved with the old and the new position.
type movedError struct {
	field string
	from  ledger.Position
	to    string // the text in the ledger
}

func (e *movedError) Error() string {
	return fmt.Sprintf("%s: %v from %v to %q", e.field, errMoved, e.from, e.to)
}

func (e *movedError) Unwrap() error { return errMoved }

// The causes of a move, as far as the ledger shows them.
const (
	// MoveAdvanced: the ledger is further ahead. Another owner was or is active, or Redis executed a call of
	// this worker whose answer was lost.
	MoveAdvanced = "advanced"
	// MoveRolledBack: the ledger is further back. Redis has lost its newest writes, by a failover or because a
	// backup was restored.
	MoveRolledBack = "rolled_back"
	// MoveRebuilt: a rebuild has replaced the boards, and its ledger is further back.
	MoveRebuilt = "rebuilt"
	// MoveEmptied: the ledger has no position any more.
	MoveEmptied = "emptied"
	// MoveTorn: a piece was written only in part.
	MoveTorn = "torn"
	// MoveUnreadable: the ledger's text is not a position.
	MoveUnreadable = "unreadable"
)

var moveCauses = [...]string{MoveAdvanced, MoveRolledBack, MoveRebuilt, MoveEmptied, MoveTorn, MoveUnreadable}

// MoveCauses lists all causes.
func MoveCauses() []string { return moveCauses[:] }

// cause derives the cause from the old and the new position.
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

// ahead reports whether more events count at position a than at b. In a sweep, that is more than at its start
// and less than at its end.
func ahead(a, b ledger.Position) bool {
	if a.From != b.From {
		return a.From > b.From
	}
	return a.Hash > b.Hash
}

// errLocateAgain reports that the worker must locate again, at once or after a wait.
var errLocateAgain = errors.New("read the ledger again")
