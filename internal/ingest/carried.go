package ingest

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/ingest/deadletter"
	"github.com/standings/standings/internal/ingest/shards"
	"github.com/standings/standings/internal/ingest/source"
	"github.com/standings/standings/internal/ingest/trail"
	"github.com/standings/standings/internal/ledger"
)

// carried is the state that one flow of a partition leaves to the next. Between two flows only the worker's
// goroutine uses it. During a flow the same goroutine uses it, since the sweeper runs there, with two
// exceptions: the reader uses written, and both use tallied.
type carried struct {
	*source.Handle
	stats *counts.Stats

	stood ledger.Positions // where the last flow left the shards' ledgers; nil: unknown
	trail trail.Trail      // as far as the flow swept, or further
	// tallied is the offset before which Stats have counted every event. A shard for which the batches have no
	// events may be behind it: events that are read again for that shard are repeated.
	tallied atomic.Int64
	// The records whose dead letters are written: those that the reader wrote, and those of refused members.
	written, writtenRefused deadletter.Written
	// The last boundsError, and when it occurred.
	bounds   string
	differed time.Time
	// lostTurn is true if the last flow ended because it needed the token for reading a batch again.
	lostTurn bool
	move     error // the last move, until its cause is known
}

// moved records a move of the ledger. The recorded positions, and the dead letters written after them, are then
// void.
func (c *carried) moved(err error) {
	c.move, c.stood, c.written, c.writtenRefused = err, nil, deadletter.Written{}, deadletter.Written{}
}

// compare compares the ledgers with the positions at which the last flow left them, since no worker saw what
// happened in between, for example while Redis was away. Then it reports the move, if there was one: if a
// ledger is further back, a rebuild moved it or Redis rolled back.
func (c *carried) compare(states []ledger.State) {
	rebuilt := false
	for i, s := range states {
		if rebuilt = rebuilt || s.Rebuilt[c.Field]; i < len(c.stood) && s.Ledger[c.Field] != c.stood[i].String() {
			c.moved(&movedError{c.Field + shards.On(i, ledger.Shards(len(states))), c.stood[i], s.Ledger[c.Field]})
		}
	}
	c.reportMove(rebuilt)
}

// reportMove counts and logs the last move, once. A worker also calls it when it ends.
func (c *carried) reportMove(rebuilt bool) {
	if c.move == nil {
		return
	}
	cause := causeOf(c.move, rebuilt)
	c.stats.CountMove(cause)
	c.Log.Info("the ledger moved: continuing from its position", zap.String("cause", cause), zap.Error(c.move))
	c.move = nil
}

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

// causeOf returns the cause of a move. rebuilt is true if the boards were refilled by a rebuild.
func causeOf(move error, rebuilt bool) string {
	e, ok := errors.AsType[*movedError](move)
	switch {
	case !ok: // only the schema was lost
		return counts.MoveEmptied
	case rebuilt && e.cause() == counts.MoveRolledBack:
		return counts.MoveRebuilt
	}
	return e.cause()
}

// cause derives the cause from the old and the new position.
func (e *movedError) cause() string {
	found, err := ledger.Parse(e.to)
	switch {
	case e.to == "":
		return counts.MoveEmptied
	case errors.Is(err, ledger.ErrTorn):
		return counts.MoveTorn
	case err != nil:
		return counts.MoveUnreadable
	case ahead(found, e.from):
		return counts.MoveAdvanced
	}
	return counts.MoveRolledBack
}

// ahead reports whether more events count at position a than at b. In a sweep, that is more than at its start
// and less than at its end.
func ahead(a, b ledger.Position) bool {
	if a.From != b.From {
		return a.From > b.From
	}
	return a.Hash > b.Hash
}

// soonAgain is the time within which the same error shows that requesting the borders again didn't help. A
// later error is due to another data loss of Redis.
const soonAgain = 10 * time.Second

// differ handles a boundsError. It returns nil if the worker must fold again by the borders in Redis,
// and a halt if it has already done so and got the same error.
func (p *pipeline) differ(e *shards.BoundsError) error {
	text := e.Error()
	again := p.carried.bounds == text && time.Since(p.carried.differed) < soonAgain
	p.carried.bounds, p.carried.differed = text, time.Now()
	if err := p.borders.Learn(e); err != nil {
		return err
	}
	if again {
		return p.borders.Halt(e)
	}
	p.Log.Info("a window has other bounds in Redis: dropping the folded events and reading them again by those bounds", zap.Error(e))
	return nil
}
