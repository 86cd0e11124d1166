// Package archive copies windows from Redis to the archive, which keeps final windows after Redis and Kafka have
// dropped them.
//
//	final, not in the archive                        ─▶ rows by rank, page by page ─▶ complete copy of the revision
//	open, its backup is older than archive.interval  ─▶ rows by a scan             ─▶ complete copy, replaces the backup
//	closed, not in the archive, about to expire      ─▶ its expiry in Redis is prolonged
//
// One process does this, the leader (internal/jobs); its token fences its writes (archive/store). Each page is one
// short read of Redis, and the archiver pauses after each.
//
// A final window does not change, so the next leader continues after the rows that are already in the archive.
// There are four exceptions:
//
//   - A member is banned or unbanned. A copy also has the rows of hidden members, and reads apply the bans of
//     their time. If a row was moved during the copy, the copy may lack it; it is then dropped and started
//     again.
//   - A member is erased: see erase.go.
//   - The window is reopened. Its listing then has no revision, which every page read shows. The copy is not
//     finished; the next sealing makes another revision.
//   - Redis goes back to before the seal, or is lost and rebuilt. The window is then sealed again with the same
//     revision, and may have other standings (docs/guarantees.md, "Final windows"). The archive's standings were
//     published, so they stay. If Redis has the same rows, nothing needs to be done. Otherwise the archiver
//     reopens the window, so that the next sealing makes the next revision, which is archived.
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

// Config is the configuration of an Archiver.
type Config struct {
	Boards *boards.Boards
	Store  *store.Store
	// Lateness returns how long after its end a window accepts events; false for a period that is not configured.
	Lateness func(ledger.Window) (time.Duration, bool)
	// Zone returns the IANA time zone of a period.
	Zone func(period string) string
	// Fields returns the fields of a board with its own rule, most significant first; nil for the default rule.
	Fields func(board string) []codec.Field
	// Interval is the maximum age of an open window's backup, and the time from a window's start to its first
	// backup. 0: open windows have no backups.
	Interval time.Duration
	// Turn is the time after which a pass starts no further backups; 0: the pass takes all backups that are due.
	Turn time.Duration
	// Progress, if set, is called after every page, and at the end of a pass.
	Progress func(Progress)
	Log      *zap.Logger
}

// Progress reports the state of an Archiver.
type Progress struct {
	Window  string // the window being copied, as board:period:name; empty at the end of a pass
	Rows    int64  // its rows that are in the archive
	Members int64  // its number of members

	Final, Backups Copied // since this archiver started
	// Waiting is the number of final windows not yet in the archive, including the one being copied. NotFinal is
	// the number of windows that no longer accept events but are not final yet.
	Waiting  int
	NotFinal int
	// Oldest is the earliest sealing time of the waiting windows; zero if none waits.
	Oldest time.Time
	// Due is the number of backups that are due, and Overdue how long the first of them has been due. Incomplete
	// is the number of open windows without a new backup because they are incomplete.
	Due        int
	Overdue    time.Duration
	Incomplete int
	// More: the pass ended because of Turn, and the next pass should start at once.
	More bool
}

// Copied is a number of copied windows and of the rows written for them.
type Copied struct{ Windows, Rows int64 }

// Archiver copies windows to an archive. It must be used by one goroutine.
type Archiver struct {
	Config

	kept     map[string]int64     // by final window: the revision known to be in the archive
	backups  map[string]time.Time // by open window: the time of its backup; nil until read
	erased   map[string]bool      // members whose rows were removed from all copies; nil until read
	hiddenBy *ranking.Hidden      // the bans at the last check for erased members
	progress Progress
	pages    int // rows per read from Redis
	append   int // rows per transaction of the archive
}

// New returns an archiver. It does not connect to Redis or the archive.
func New(c Config) *Archiver {
	if c.Progress == nil {
		c.Progress = func(Progress) {}
	}
	return &Archiver{Config: c, kept: map[string]int64{}, pages: rowsOfPage, append: rowsOfAppend}
}

const (
	// rowsOfPage is the number of rows per read from Redis: at most about a millisecond of Redis's time.
	rowsOfPage = 1000
	// rowsOfAppend is the number of rows per transaction of the archive.
	rowsOfAppend = 10_000
	// listPause is the pause between two pages of 500 listed windows.
	listPause = 25 * time.Millisecond
	// mostFailed is the number of failed windows after which a pass ends.
	mostFailed = 3
)

// Reached returns the progress.
func (a *Archiver) Reached() Progress { return a.progress }

// Pass copies all final windows that are not in the archive, earliest end first, prolongs closed windows that
// would expire before they are archived, and takes the backups that are due. A window that cannot be copied does
// not prevent the others; the error names the causes. If another process has become the leader, the pass ends with
// store.ErrFenced.
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
		case !a.has(&c):
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
			break // the cause is not a single window
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

// stay prolongs the expiry of windows that are not in the archive, and restores the expiry of windows that are.
func (a *Archiver) stay(ctx context.Context, closed, missing []boards.Closed) error {
	p := Place{Name: "archive", Text: "the archive", Lateness: a.Lateness}
	return errors.Join(p.Release(ctx, a.Boards, closed, a.has), p.Stay(ctx, a.Boards, missing, a.Log))
}

// has reports whether a final window is known to be in the archive.
func (a *Archiver) has(c *boards.Closed) bool {
	return c.Revision > 0 && a.kept[c.Listing()] == c.Revision
}

// missing returns the final windows whose current seal is not in the archive. It queries the archive, since a new
// leader has no state yet and must not prolong windows that are already archived. If the archive cannot be read,
// all remaining windows count as missing.
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
	p.Window, p.Rows, p.Members = "", 0, 0
	p.Waiting, p.Oldest = Waiting(final, a.has)
	a.Progress(*p)
}

// forget drops the state of windows that are no longer listed.
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

// wentBack detects an archive that was restored from a backup taken before this leader first wrote to it, so that
// it may lack windows known to be archived. A restore to a later moment is not detected by this leader; the next
// leader checks all windows. If the token cannot be read, wentBack does nothing, since the first transaction will
// fail.
func (a *Archiver) wentBack(ctx context.Context, f store.Fence) error {
	token, err := a.Store.LargestToken(ctx)
	if err != nil || token >= f.Token || len(a.kept) == 0 && a.backups == nil && a.erased == nil {
		return nil //nolint:nilerr // see above
	}
	a.Log.Warn("the archive has gone back to before this leader: final windows are searched again", zap.Int64("token", token), zap.Int64("own", f.Token))
	clear(a.kept)
	a.backups, a.erased = nil, nil
	return a.Store.Take(ctx, f)
}
