// Package rebuild folds the log into a shadow of the live boards, while consumers run, and swaps the two
// when both have counted the same events.
//
//	lock ─▶ begin ─▶ read, round by round ─▶ take over ────────────────────▶ unlink
//	 ▲                ▲              │                                         ▲
//	 │ rolled back    │              └─▶ hold ─▶ read the rest ─▶ swap ────────┘
//	 └─── again       └─── release ◀───────┘ not in time, or the ledger moved
//
// A rebuild runs the consumer's own worker without a group (replay.Replay), which writes through the same
// script into separate keys (shadow.Rebuild). It never reads past the live ledger, since a counted event
// cannot be removed again. All its keys in Redis have a lease, so a rebuild that is killed at any point
// leaves the live boards unchanged.
//
// If it replaces every window that accepts events, it takes over: the consumers continue from the shadow's
// ledger, which is slightly behind theirs, and are never held. If it keeps such windows, or compares the
// boards, it holds ingestion. It then renames only if both ledgers are equal, which is checked in the call
// that renames.
//
// If there are several shards, all are locked and first read together, and the log is folded once. Then the
// shards are finished one after the other: read the rest, hold, swap. Each shard is exact for its own
// ledger, and no other shard is held meanwhile. A rebuild that is killed between two shards leaves some
// shards rebuilt and the others unchanged.
package rebuild

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/shadow"
)

// Job is a rebuild to run. All fields are required, except Bans and those of Watch.
type Job struct {
	Live []*ranking.Store // one per shard, in order
	// Replay returns a replay into the given shadows, one per shard.
	Replay func(into []*shadow.Store) (*replay.Replay, error)
	// Bans, if not nil, applies the bans topic to the live boards. It is called before anything is read and
	// before each hold. The shadow hides the members that the live boards hide: if Redis had lost the bans,
	// the rebuilt boards would show banned members until a consumer restores the bans.
	Bans   func(context.Context) error
	From   replay.From
	Choice shadow.Choice
	Owner  string // the owner's name, shown to others

	MaxHold time.Duration // maximum duration of one hold
	Lease   time.Duration // the rebuild's keys in Redis expire after this time unless renewed

	DryRun bool // do everything but the swap
	// Compare compares the live boards with the rebuilt ones, and lists the first List standings that
	// differ.
	Compare bool
	List    int
	// Name adds names to these members.
	Name bool

	Watch Watch

	patience patience
}

// Watch receives the progress of a rebuild. Any field may be nil.
type Watch struct {
	// Planned is called before anything is read.
	Planned func(*Plan)
	// Reading is called when reading starts, with the number of offsets to read and a function that returns
	// how many of them have been read on every shard. Reading returns a function that is called when
	// reading ends.
	Reading func(total int64, through func() int64) (ended func())
	Note    func(string)
}

func (w *Watch) notef(format string, args ...any) {
	if w.Note != nil {
		w.Note(fmt.Sprintf(format, args...))
	}
}

// alignBans calls Bans, except in a dry run, which does not change the live boards.
func (j *Job) alignBans(ctx context.Context) error {
	if j.Bans == nil || j.DryRun {
		return nil
	}
	return j.Bans(ctx)
}

// ErrNothing reports that there is nothing to rebuild.
var ErrNothing = errors.New("nothing was counted here yet: a consumer begins by itself")

// tries is the largest number of attempts of one Run.
const tries = 3

// Run runs the rebuild. In every case it releases the holds and the locks, and removes its keys from Redis
// or leaves them to expire. An error means that nothing was changed, unless Swapped or Unsure is set in the
// result or in one of its Shards.
func (j *Job) Run(ctx context.Context) (*Result, error) {
	began := time.Now()
	r := &Result{Shards: make([]ShardResult, len(j.Live))}
	for try := 1; ; try++ {
		err := j.attempt(ctx, r, began, try)
		r.sum()
		r.Took = time.Since(began)
		if try == tries || !errors.Is(err, replay.ErrWentBack) && !errors.Is(err, replay.ErrLogMoved) {
			return r, err
		}
		j.Watch.notef("beginning anew: %v", err)
	}
}
