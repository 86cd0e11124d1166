// Package reading is boards as whoever shows them reads them: the API, the page and the terminal.
// It finds the window that is meant, reads it over all shards, and says with every answer how far
// that answer can be trusted.
//
//	board, period, "current" ─▶ Target ─▶ View: rows, as of when, by which ledger, and whether
//	                                      that is all there is
//
// A window that Redis doesn't list is read from the archive, where there is one: its newest copy, by
// the same reads. Of one that isn't over that is a backup, and an archive that can't be read is no error.
//
// Every read of a shard is one script call, in which the schema is compared, or of many members a few;
// over several shards each is read as of a moment of its own. A reshard that has switched over is followed.
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

// Period is a period whose windows are kept.
type Period struct {
	Rule periods.Rule
	Zone string // IANA: what its times are shown in
}

// Config is what a Reader is made of.
type Config struct {
	Boards *boards.Boards
	// Renumber returns the boards with the number of shards that Redis has recorded; nil if that is current. One
	// goroutine at a time calls it.
	Renumber func(ctx context.Context, current ledger.Shards) (*boards.Boards, error)
	Periods  []Period // that are kept, in the order in which they are shown
	// Named are the boards that there can be; empty: any.
	Named []string
	// CheckBoard refuses a name that no board has.
	CheckBoard func(name string) error
	// Has reports whether a board has windows of a period.
	Has func(board string, p periods.Period) bool
	// Rule is what a board counts, by the default rule too.
	Rule   func(board string) rules.Rule
	Topics []string // by which how far the boards are is judged
	Names  bool     // members have names
	// Archive is what windows are read from that Redis doesn't list; nil: nothing.
	Archive *Archive
}

// Reader reads boards. It is safe for concurrent use.
type Reader struct {
	Config

	mu     sync.Mutex
	boards *boards.Boards // as of now

	renumbering chan struct{} // one at a time reads the number of shards

	clock   clock
	borders borders
	lines   workers.Lines
	catalog catalog
	archive *archive
	hidden  atomic.Pointer[ranking.Hidden] // as they were last read
}

// New makes a reader. It doesn't talk to Redis.
func New(c Config) *Reader {
	return &Reader{Config: c, boards: c.Boards, archive: newArchive(c.Archive), renumbering: make(chan struct{}, 1), borders: borders{turn: make(chan struct{}, 1)}}
}

// Boards are those that there are by now.
func (r *Reader) Boards() *boards.Boards {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.boards
}

// View is a window as it was read, and how far what counts its events had come then.
type View struct {
	ranking.Board
	workers.Progress
	Target Target
	// Archived: it is the archive's copy of a window that Redis doesn't list, as of AsOf: of a final
	// window by its Revision, or, where that is 0, a backup of one that took events then.
	Archived bool
	AsOf     time.Time

	layout codec.TupleLayout
	before *ranking.Standing // of a copy: a row with the score of the pivot that a page is after
}

// SamePoints reports whether a score, that of the pivot which the view was read after, has the
// points, or the tuple, of a standing.
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

// read reads a window, once more where a reshard has moved the boards, or where the window that is
// meant has changed since the clock was last seen. A prefix under which there is nothing is an
// empty board: a consumer may just not have begun. What Redis doesn't list is read by from, of the
// archive's copy.
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

// isLive reports whether a window isn't over that Redis doesn't list: most often nothing has happened in it
// yet. What Redis says of it is an answer, so an archive that is away, or slow, doesn't keep anybody from
// that. Where Redis holds nothing at all, nothing was ever counted or Redis was lost: only the archive knows.
func isLive(b *ranking.Board, w periods.Window) bool {
	return b.Beside.Schema != "" && w.End > b.Beside.Now.UnixMilli()
}

func archiveFailed(err error) bool {
	_, ok := errors.AsType[*ArchiveError](err)
	return ok
}

// mostTries is how often a read is done once more.
const mostTries = 3

// named joins what was read with what its members are called.
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

// Follow reads the number of shards every second, until the context ends, and follows a reshard that has switched over. A
// reshard also marks the old shards, which readers find at once, but may be killed before that.
func (r *Reader) Follow(ctx context.Context) {
	for retry.Sleep(ctx, followEvery) == nil {
		_ = r.renumber(ctx, r.Boards()) // else the next one: Redis does not answer
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

// Answers reports whether Redis answers, on every shard.
func (r *Reader) Answers(ctx context.Context) error {
	_, err := r.Boards().State(ctx)
	return err
}
