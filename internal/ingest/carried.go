package ingest

import (
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/deadletter"
	"github.com/standings/standings/internal/ingest/trail"
	"github.com/standings/standings/internal/ledger"
)

// carried is the state that one flow of a partition leaves to the next. Between two flows only the worker's
// goroutine uses it. During a flow the same goroutine uses it, since the sweeper runs there, with two
// exceptions: the reader uses written, and both use tallied.
type carried struct {
	*partition
	stats *Stats

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
		if rebuilt = rebuilt || s.Rebuilt[c.field]; i < len(c.stood) && s.Ledger[c.field] != c.stood[i].String() {
			c.moved(&movedError{c.field + onShard(i, ledger.Shards(len(states))), c.stood[i], s.Ledger[c.field]})
		}
	}
	c.reportMove(rebuilt)
}

// reportMove counts and logs the last move, once. A worker also calls it when it ends.
func (c *carried) reportMove(rebuilt bool) {
	if c.move == nil {
		return
	}
	cause := c.stats.moved(c.move, rebuilt)
	c.log.Info("the ledger moved: continuing from its position", zap.String("cause", cause), zap.Error(c.move))
	c.move = nil
}
