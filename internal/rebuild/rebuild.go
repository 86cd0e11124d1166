// Package rebuild folds the log into a shadow of the live boards, beside the consumers,
// and swaps the two where both hold the very same events.
//
//	lock ─▶ begin ─▶ read, round by round ─▶ take over ────────────────────▶ unlink
//	 ▲                ▲              │                                         ▲
//	 │ went back      │              └─▶ hold ─▶ read the rest ─▶ swap ────────┘
//	 └─── anew        └─── release ◀───────┘ not there in time, or the ledger moved
//
// A rebuild is the consumer's own worker without a group (ingest.Replay), writing through
// the same script into keys of its own (shadow.Rebuild). It never goes past the live
// ledger, since what is in can't be taken out again. All that it has in Redis ends by a lease: killed at
// any point, it leaves the live boards as they are.
//
// If it replaces every window that takes events, it takes over: the consumers continue from its ledger, which is a
// little behind theirs, and are never held. If it keeps some, or compares the boards, it holds ingestion, and nothing
// is renamed unless both ledgers are equal, in the call that renames.
//
// Of several shards all are locked, and read at first together, folded once. Then it is one
// shard's turn after the other: read the rest, hold, swap. Each is exact for its own ledger,
// and no other is held meanwhile. Killed between two turns, it leaves some shards rebuilt and
// the others as they are.
package rebuild

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/shadow"
)

// Job is a rebuild to be done. Every field but Bans and those of Watch is set.
type Job struct {
	Live []*ranking.Store // one a shard, in order
	// Replay makes a replay into shadows, one a shard.
	Replay func(into []*shadow.Store) (*ingest.Replay, error)
	// Bans, if there is one, brings the live boards in line with the bans topic: before anything is read, and before
	// each hold. The new boards hide the members whom the live ones hide. If Redis has lost the bans, they would
	// show banned members until a consumer notices.
	Bans   func(context.Context) error
	From   ingest.ReplayFrom
	Choice shadow.Choice
	Owner  string // shown to others: who rebuilds

	MaxHold time.Duration // ingestion is held for no longer at a time
	Lease   time.Duration // what the rebuild has in Redis lives so long without it

	DryRun bool // everything but the swap
	// Compare has the boards compared with what takes their place, and so many standings
	// that differ listed.
	Compare bool
	List    int
	// Name has it read what the members of those are called.
	Name bool

	Watch Watch

	patience patience
}

// Watch is called as a rebuild goes on; what is nil isn't.
type Watch struct {
	// Planned is called before anything is read.
	Planned func(*Plan)
	// Reading is called when reading begins: how many offsets there are, and how to learn
	// how many are in, in every shard. It ends with what it returns.
	Reading func(total int64, through func() int64) (ended func())
	Note    func(string)
}

func (w *Watch) notef(format string, args ...any) {
	if w.Note != nil {
		w.Note(fmt.Sprintf(format, args...))
	}
}

// alignBans calls Bans. A dry run changes nothing of the live boards.
func (j *Job) alignBans(ctx context.Context) error {
	if j.Bans == nil || j.DryRun {
		return nil
	}
	return j.Bans(ctx)
}

// ErrNothing says that there is nothing to rebuild.
var ErrNothing = errors.New("nothing was counted here yet: a consumer begins by itself")

// tries is how often a rebuild begins anew by itself.
const tries = 3

// Run rebuilds. Whatever it returns, the holds and the locks are let go of, and what is left
// in Redis expires by itself if it couldn't be removed. An error says that nothing was
// changed, unless Result.Swapped or Result.Unsure says otherwise, or one of Result.Shards.
func (j *Job) Run(ctx context.Context) (*Result, error) {
	began := time.Now()
	r := &Result{Shards: make([]ShardResult, len(j.Live))}
	for try := 1; ; try++ {
		err := j.attempt(ctx, r, began, try)
		r.sum()
		r.Took = time.Since(began)
		if try == tries || !errors.Is(err, ingest.ErrWentBack) && !errors.Is(err, ingest.ErrLogMoved) {
			return r, err
		}
		j.Watch.notef("beginning anew: %v", err)
	}
}
