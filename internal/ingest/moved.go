package ingest

import (
	"errors"
	"fmt"

	"github.com/standings/standings/internal/ledger"
)

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

// Causes of a move, as far as the ledger shows.
const (
	// MoveAdvanced: it stands further on. Another owner was here, or still is; or a
	// call of our own was executed whose answer never came.
	MoveAdvanced = "advanced"
	// MoveRolledBack: it stands further back. Redis has lost what it had last: by a
	// failover, or a backup that was restored.
	MoveRolledBack = "rolled_back"
	// MoveRebuilt: a rebuild replaced the boards, and its ledger is further back.
	MoveRebuilt = "rebuilt"
	// MoveEmptied: nothing stands there any more.
	MoveEmptied = "emptied"
	// MoveTorn: a piece was written in part.
	MoveTorn = "torn"
	// MoveUnreadable: it holds what isn't a position.
	MoveUnreadable = "unreadable"
)

var moveCauses = [...]string{MoveAdvanced, MoveRolledBack, MoveRebuilt, MoveEmptied, MoveTorn, MoveUnreadable}

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

// errLocateAgain says that the start has to be looked at again, at once or after a wait.
var errLocateAgain = errors.New("the ledger has to be read again")
