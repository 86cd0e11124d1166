package ingest

import (
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/deadletter"
	"github.com/standings/standings/internal/ingest/trail"
	"github.com/standings/standings/internal/ledger"
)

// carried is what one flow of a partition leaves to the next. Between two flows all of it is
// the worker's goroutine's. While one is under way so is all but written, which is its
// reader's, and tallied, which both use: the sweeper runs in that goroutine, too.
type carried struct {
	*partition
	stats *Stats

	stood ledger.Positions // where it left the ledgers of the shards; nil: unknown
	trail trail.Trail      // as far as it was swept, or further
	// tallied is the offset before which Stats have every event. A shard for which the batches have nothing may be
	// before it: what is read again for that shard is repeated.
	tallied atomic.Int64
	// The records whose dead letters are written: the reader's, and those of members who
	// were refused.
	written, writtenRefused deadletter.Written
	// The last boundsError, and when it was.
	bounds   string
	differed time.Time
	// lostTurn: it ended for its turn at reading a batch again.
	lostTurn bool
	move     error // the last move, until its cause is known
}

// moved notes a move. What was known of the ledger and of the dead letters behind its position is void.
func (c *carried) moved(err error) {
	c.move, c.stood, c.written, c.writtenRefused = err, nil, deadletter.Written{}, deadletter.Written{}
}

// compare compares the ledgers with where the flow before left them, since no worker saw what happened in between, as
// while Redis was away. It then reports a move: a ledger that is further back was moved by a rebuild, or Redis went back.
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
