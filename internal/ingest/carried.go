package ingest

import (
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/ingest/deadletter"
	"github.com/standings/standings/internal/ingest/trail"
	"github.com/standings/standings/internal/ledger"
)

// carried is what one flow of a partition leaves to the next. Between two flows all of it is
// the worker's goroutine's. While one is under way so is all but written, which is its
// reader's: the sweeper runs in that goroutine, too.
type carried struct {
	*partition
	stats *Stats

	stood ledger.Positions // where it left the ledgers of the shards; nil: unknown
	trail trail.Trail      // as far as it was swept, or further
	// The records whose dead letters are written: the reader's, and those of members who
	// were refused.
	written, writtenRefused deadletter.Written
	// The last boundsError, and when it was.
	bounds   string
	differed time.Time
	// lostTurn: it ended for its turn at reading a batch again.
	lostTurn bool
}

// moved counts a move, and logs it. What was known of the ledger and of the dead letters
// behind its position is void.
func (c *carried) moved(err error) {
	c.stats.moved(err)
	c.log.Info("the ledger has moved: going on from what it says", zap.Error(err))
	c.stood, c.written, c.writtenRefused = nil, deadletter.Written{}, deadletter.Written{}
}

// compare holds the ledgers against where the flow before left it: what happened in between,
// as while Redis was away, nobody was there to see.
func (c *carried) compare(texts []string) {
	for i, stood := range c.stood {
		if texts[i] != stood.String() {
			c.moved(&movedError{c.field + onShard(i, ledger.Shards(len(texts))), stood, texts[i]})
			return
		}
	}
}
