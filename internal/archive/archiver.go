// Package archive copies windows from Redis to the archive, where final windows stay once Redis and
// Kafka don't have them any more.
//
//	final, and not in the archive      ─▶ rows by rank, page by page ─▶ whole copy of the revision
//	open, and its backup is old enough ─▶ rows by a scan             ─▶ whole copy, replaces the backup
//	closed, not in the archive, and about to expire                  ─▶ stays in Redis for longer
//
// One process does so, the leader (internal/jobs), and its token fences what it writes (archive/store).
// Each page is one short read of Redis, and after each the archiver waits.
//
// A final window doesn't change, so the next leader continues after the rows that are in. Four things
// change it all the same:
//
//   - A ban hides a member, or shows one. A copy has the rows of hidden members too, and reads apply the bans of
//     their time. A copy that may lack a row because it was moved meanwhile is dropped and begun anew.
//   - A member is erased: see erase.go.
//   - It is reopened. Its listing has no revision any more, which every page shows. The copy isn't
//     finished; the next seal makes another revision.
//   - Redis goes back to before the seal, or is lost and rebuilt: the window is sealed again with the
//     same revision, and may have other standings (docs/guarantees.md, "Final windows"). The archive's
//     were shown to people, so they stay. If Redis has the same rows, nothing is to be done. Otherwise the
//     seal is taken back, so that the next one makes the next revision, which is archived.
//
// An open window changes while it is read: see open.go.
package archive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
)

// Config is what an Archiver is made of.
type Config struct {
	Boards *boards.Boards
	Store  *store.Store
	// Lateness is how long after its end a window takes events; false for a period that isn't configured.
	Lateness func(ledger.Window) (time.Duration, bool)
	// Zone is the time zone of a period, IANA.
	Zone func(period string) string
	// Fields are those of a board by a rule of its own, most significant first; nil by the default rule.
	Fields func(board string) []codec.Field
	// Interval is how old the backup of an open window may become; for a window without one, how long
	// after its start the first is taken. 0: open windows have no backups.
	Interval time.Duration
	// Turn is how long a pass begins with other backups before it ends; 0: until none is due.
	Turn time.Duration
	// Progress, if there is one, is called after every page, and at the end of a pass.
	Progress func(Progress)
	Log      *zap.Logger
}

// Progress is how far an Archiver is.
type Progress struct {
	Window  string // that is being copied: board:period:name; empty at the end of a pass
	Rows    int64  // of it that are in the archive
	Members int64  // how many it has

	Final, Backups Copied // by this archiver so far
	// Waiting is how many final windows aren't in the archive yet, that one too; NotFinal how many
	// take no events any more and aren't final yet.
	Waiting  int
	NotFinal int
	// Oldest is when the first of those that wait was sealed; zero if none waits.
	Oldest time.Time
	// Due is how many backups are due, and Overdue for how long the first of them has been. Incomplete is how
	// many open windows have no new backup because they aren't complete.
	Due        int
	Overdue    time.Duration
	Incomplete int
	// More: the pass ended by its Turn, and the next one is to begin at once.
	More bool
}

// Copied is a number of windows, and of rows that were written for them.
type Copied struct{ Windows, Rows int64 }

// Archiver copies windows to an archive. It is used by one goroutine.
type Archiver struct {
	Config

	kept     map[string]int64     // by final window: the revision that is known to be in the archive
	backups  map[string]time.Time // by open window: when its backup was taken; nil until it is read
	erased   map[string]bool      // members of whom the archive has no row; nil until they are read
	hiddenBy *ranking.Hidden      // the bans as they were when members were erased last
	progress Progress
	pages    int // rows of a read of Redis
	append   int // rows of a transaction of the archive
}

// New makes an archiver. It talks to nobody.
func New(c Config) *Archiver {
	if c.Progress == nil {
		c.Progress = func(Progress) {}
	}
	return &Archiver{Config: c, kept: map[string]int64{}, pages: rowsOfPage, append: rowsOfAppend}
}

const (
	// rowsOfPage is how many rows one read of Redis has: a millisecond of its time or less.
	rowsOfPage = 1000
	// rowsOfAppend is how many rows a transaction of the archive has.
	rowsOfAppend = 10_000
	// listPause is between two pages of 500 listed windows.
	listPause = 25 * time.Millisecond
	// mostFailed is how many windows a pass fails at before it ends.
	mostFailed = 3
)

// Reached is how far it is.
func (a *Archiver) Reached() Progress { return a.progress }

// Pass copies all final windows that aren't in the archive, by their ends, prolongs closed windows that
// would expire before, and takes the backups that are due. If a window can't be copied the others still
// are, and the error says why. If another process leads the error is store.ErrFenced, and the pass ends.
func (a *Archiver) Pass(ctx context.Context, f store.Fence) error {
	closed, open, err := a.Boards.ClosedAndOpen(ctx, a.Lateness, listPause)
	if err != nil {
		return fmt.Errorf("list windows: %w", err)
	}
	if err := a.wentBack(ctx, f); err != nil {
		return err
	}
	var failed []error
	if err := a.erase(ctx, f); err != nil {
		if ctx.Err() != nil || errors.Is(err, store.ErrFenced) {
			return err
		}
		failed = append(failed, err)
	}
	var final, left []boards.Closed
	for _, c := range closed {
		switch {
		case c.Revision == 0:
			left, open = append(left, c), append(open, c.Window)
		case a.kept[c.Listing()] != c.Revision:
			final = append(final, c)
		}
	}
	a.forget(closed, open)
	a.progress.NotFinal = len(left)
	final = a.missing(ctx, final)
	if err := a.stay(ctx, closed, append(left, final...)); err != nil {
		failed = append(failed, err)
	}
	for i := range final {
		a.progress.Waiting, a.progress.Oldest = len(final)-i, final[i].SealedAt
		err := a.archive(ctx, f, &final[i])
		switch {
		case ctx.Err() != nil || errors.Is(err, store.ErrFenced):
			return err
		case err != nil && !errors.Is(err, ErrChanged):
			failed = append(failed, err)
		}
		if len(failed) == mostFailed {
			break // the cause isn't a single window
		}
	}
	if a.Interval > 0 && len(failed) < mostFailed {
		if err := a.takeBackups(ctx, f, open); err != nil {
			if ctx.Err() != nil || errors.Is(err, store.ErrFenced) {
				return err
			}
			failed = append(failed, err)
		}
	}
	if len(failed) == 0 {
		if _, err := a.Store.Sweep(ctx, f); err != nil {
			failed = append(failed, err)
		}
	}
	a.done(final)
	return errors.Join(failed...)
}

// stay has windows stay in Redis that aren't in the archive, and releases those that are in by now.
func (a *Archiver) stay(ctx context.Context, closed, missing []boards.Closed) error {
	p := Place{Name: "archive", Text: "the archive", Lateness: a.Lateness}
	err := p.Release(ctx, a.Boards, closed, func(c *boards.Closed) bool { return c.Revision > 0 && a.kept[c.Listing()] == c.Revision })
	return errors.Join(err, p.Stay(ctx, a.Boards, missing, a.Log))
}

// missing are the windows whose very seal isn't in the archive, as far as it says so: a new leader
// knows nothing yet, and mustn't prolong those that are in. If the archive can't be read, all are missing.
func (a *Archiver) missing(ctx context.Context, final []boards.Closed) (missing []boards.Closed) {
	for i := range final {
		c := &final[i]
		there, err := a.Store.Revision(ctx, c.Board, c.Period, c.Name, c.Revision)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return append(missing, final[i:]...)
		}
		if err == nil && there.SealedAt.UnixMilli() == c.SealedAt.UnixMilli() {
			a.kept[c.Listing()] = c.Revision
			continue
		}
		missing = append(missing, *c)
	}
	return missing
}

// done reports what is left at the end of a pass.
func (a *Archiver) done(final []boards.Closed) {
	p := &a.progress
	p.Window, p.Rows, p.Members, p.Waiting, p.Oldest = "", 0, 0, 0, time.Time{}
	for i := range final {
		if a.kept[final[i].Listing()] != final[i].Revision {
			if p.Waiting++; p.Oldest.IsZero() || final[i].SealedAt.Before(p.Oldest) {
				p.Oldest = final[i].SealedAt
			}
		}
	}
	a.Progress(*p)
}

// forget drops what is known of windows that aren't listed any more.
func (a *Archiver) forget(closed []boards.Closed, open []ledger.Window) {
	listed := map[string]bool{}
	for i := range closed {
		listed[closed[i].Listing()] = true
	}
	maps.DeleteFunc(a.kept, func(name string, _ int64) bool { return !listed[name] })
	listed = map[string]bool{}
	for i := range open {
		listed[open[i].Listing()] = true
	}
	maps.DeleteFunc(a.backups, func(name string, _ time.Time) bool { return !listed[name] })
}

// wentBack finds an archive that was restored from before this leader wrote to it: then it may lack what is
// known to be in it. The leader doesn't notice a restore to a moment after that; the next leader looks at all
// windows anew. If the token can't be read, the first transaction fails.
func (a *Archiver) wentBack(ctx context.Context, f store.Fence) error {
	token, err := a.Store.LargestToken(ctx)
	if err != nil || token >= f.Token || len(a.kept) == 0 && a.backups == nil && a.erased == nil {
		return nil //nolint:nilerr // see above
	}
	a.Log.Warn("the archive has gone back to before this leader: what is final is looked for anew", zap.Int64("token", token), zap.Int64("own", f.Token))
	clear(a.kept)
	a.backups, a.erased = nil, nil
	return a.Store.Take(ctx, f)
}
