// Package reading reads boards for the API, the page and the terminal. It finds the requested window, reads it
// over all shards, and states with every answer how current and complete it is.
//
//	board, period, "current" ─▶ Target ─▶ View: rows, time, ledger, and whether
//	                                      the window is complete
//
// If Redis does not list a window and there is an archive, the same reads use the window's newest copy in the
// archive. If that window is not over, the copy is a backup, and an unavailable archive is not an error.
//
// Each shard is read by one script call, which also compares the schema; reads of many members use a few calls.
// Each shard is read at its own instant. The reader follows a reshard to the new number of shards.
package reading

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ledger/workers"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/retry"
	"github.com/standings/standings/internal/rules"
)

// Period is a configured period.
type Period struct {
	Rule periods.Rule
	Zone string // IANA name of the time zone in which its times are shown
}

// Config is the configuration of a Reader.
type Config struct {
	Boards *boards.Boards
	// Renumber returns the boards with the number of shards that Redis has recorded; nil if that is current. One
	// goroutine at a time calls it.
	Renumber func(ctx context.Context, current ledger.Shards) (*boards.Boards, error)
	Periods  []Period // all periods, in display order
	// Named are the possible boards; empty: any.
	Named []string
	// CheckBoard returns an error for a name that no board can have.
	CheckBoard func(name string) error
	// Has reports whether a board has windows of a period.
	Has func(board string, p periods.Period) bool
	// Rule returns the rule of a board, also if that is the default rule.
	Rule   func(board string) rules.Rule
	Topics []string // topics whose progress determines whether a window is behind
	Names  bool     // members have display names
	// Archive is the archive for windows that Redis does not list; nil: none.
	Archive *Archive
}

// Reader reads boards. It is safe for concurrent use.
type Reader struct {
	Config

	mu     sync.Mutex
	boards *boards.Boards // replaced after a reshard

	renumbering chan struct{} // holds a token while a goroutine reads the number of shards

	clock   clock
	borders borders
	lines   workers.Lines
	catalog catalog
	archive *archive
	hidden  atomic.Pointer[ranking.Hidden] // as last read
}

// New returns a reader. It does not connect to Redis.
func New(c Config) *Reader {
	return &Reader{Config: c, boards: c.Boards, archive: newArchive(c.Archive), renumbering: make(chan struct{}, 1), borders: borders{turn: make(chan struct{}, 1)}}
}

// Boards returns the current boards.
func (r *Reader) Boards() *boards.Boards {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.boards
}

// View is a window as it was read, and the consumers' progress at that time.
type View struct {
	ranking.Board
	workers.Progress
	Target Target
	// Archived: this is the archive's copy, taken at AsOf, of a window that Redis does not list. With a Revision
	// it is a final window; if Revision is 0, it is a backup of a window that was still open.
	Archived bool
	AsOf     time.Time

	layout codec.TupleLayout
	before *ranking.Standing // for a copy: a row with the score of the page's pivot
}

// SamePoints reports whether the score of the pivot after which the view was read has the same points, or the same
// tuple, as a standing.
func (v *View) SamePoints(score float64, st *ranking.Standing) bool {
	if v.Archived {
		return v.before != nil && v.before.Score == score && v.before.Points == st.Points && v.before.Tuple == st.Tuple
	}
	tuple := st.Tuple
	if v.Fields.Len() == 0 {
		tuple = codec.Tuple{st.Points}
	}
	low, high, err := v.layout.Bounds(tuple)
	return err == nil && low <= score && score < high
}

// read reads a window. It reads again if a reshard has moved the boards, or if current or previous names another
// window by now. If Redis holds nothing, the board is empty: perhaps no consumer has started yet. If Redis does
// not list the window, from reads it from the archive's copy.
func (r *Reader) read(ctx context.Context, t Target, do func(*boards.Boards, periods.Window) (ranking.Board, error), from func(*copied) error) (View, error) {
	for tries := 0; ; tries++ {
		all := r.Boards()
		b, err := do(all, t.Window)
		if other, ok := errors.AsType[*ranking.SchemaError](err); ok {
			if ranking.LeftFor(other.Found) > 0 && tries < mostTries {
				if err := r.renumber(ctx, all); err != nil {
					return View{}, err
				}
				continue
			}
			if other.Found == "" {
				err = nil
			}
		}
		if err != nil {
			return View{}, err
		}
		if !b.Beside.Now.IsZero() {
			r.clock.is(b.Beside.Now)
		}
		if t.relative() && tries < mostTries {
			again, err := r.at(t, b.Beside.Now)
			if err == nil && again.Window != t.Window {
				t = again
				continue
			}
		}
		layout, _ := all.Layout(t.Board, t.Period.Rule.Name())
		v := View{Board: b, Progress: r.lines.Of(&b.Beside, r.Topics), Target: t, layout: layout}
		if r.archive != nil && !b.Listed && b.Lost == "" {
			copied, err := r.fromArchive(ctx, all, t, &b, layout, from)
			switch {
			case err == nil:
				v = copied
			case errors.Is(err, store.ErrNotFound) || ctx.Err() == nil && isLive(&b, t.Window) && archiveFailed(err):
			default:
				return View{}, err
			}
		}
		return r.named(ctx, all, v)
	}
}

// isLive reports whether a window that Redis does not list is not over yet. Normally such a window has no events
// yet, so the answer from Redis is sufficient, and an unavailable or slow archive must not prevent it. If Redis
// holds nothing at all, either no event was ever counted or Redis was lost, and only the archive can tell.
func isLive(b *ranking.Board, w periods.Window) bool {
	return b.Beside.Schema != "" && w.End > b.Beside.Now.UnixMilli()
}

func archiveFailed(err error) bool {
	_, ok := errors.AsType[*ArchiveError](err)
	return ok
}

// mostTries is how often a read is repeated.
const mostTries = 3

// named adds the members' display names.
func (r *Reader) named(ctx context.Context, all *boards.Boards, v View) (View, error) {
	if r.Names && len(v.Standings) > 0 {
		if err := all.Name(ctx, &v.Board); err != nil {
			return View{}, err
		}
	}
	return v, nil
}

// followEvery is how often Follow reads the number of shards.
const followEvery = time.Second

// Follow reads the number of shards every second until the context ends, and follows a reshard that has switched
// over. A reshard also marks the old shards, and reads that meet a mark follow it at once; but a reshard may be
// killed before it sets the marks.
func (r *Reader) Follow(ctx context.Context) {
	for retry.Sleep(ctx, followEvery) == nil {
		_ = r.renumber(ctx, r.Boards()) // if Redis does not answer, the next attempt follows
	}
}

// renumber follows a reshard, unless another goroutine has done so since the boards were seen.
func (r *Reader) renumber(ctx context.Context, seen *boards.Boards) error {
	select {
	case r.renumbering <- struct{}{}:
		defer func() { <-r.renumbering }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if r.Boards() != seen {
		return nil
	}
	all, err := r.Renumber(ctx, seen.Of())
	if err != nil {
		return fmt.Errorf("follow a reshard: %w", err)
	}
	if all == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.boards = all
	return nil
}

// Answers returns nil if Redis replies on every shard.
func (r *Reader) Answers(ctx context.Context) error {
	_, err := r.Boards().State(ctx)
	return err
}
