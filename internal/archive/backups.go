package archive

// Backups of windows that take events still: which are due, and when.
//
//	listed, not final ─▶ no backup, or one as old as the interval ─▶ read by a scan, page by page
//	                                                                 ─▶ put in order by the database
//	                     unchanged: the backup before is as of now ◀─┤
//	                     Redis has less: the backup before stays   ◀─┤
//	                     written, and replaces the one before in a moment ◀┘
//
// When a window is due is worked out from the archive and by the clock of Redis, so whoever leads next
// goes on with what is due still. A window whose backup isn't whole when its leader dies is read anew.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
)

// BackupConfig is what Backups are made of, beside what an Archiver is.
type BackupConfig struct {
	Config
	// Every is how old a backup may become; of a window without one, how long after its start it has one.
	// 0: all are due at once.
	Every time.Duration
	// Replace has a backup replaced also where Redis has less than it.
	Replace bool
	// Turn is for how long a call of Pass begins with another window; 0: until none is due.
	Turn time.Duration
	// Reached, where there is one, is called while a window is read and written, and at the end of a pass.
	Reached func(BackupProgress)
}

// BackupProgress is how far backups have come.
type BackupProgress struct {
	Window  string        // that is being read or written; empty at the end of a pass
	Read    int64         // members of it that were read, some twice
	Members int64         // how many it has; 0 until it is read
	Rows    int64         // of it that are in the archive
	Due     int           // windows whose backups are due, that one too
	Overdue time.Duration // for how long the first of those is

	// Of all windows since this process leads, or for a run by hand:
	Taken     int64 // backups that were written
	Unchanged int64 // windows that had the same rows as before
	Kept      int64 // whose backup stays, as Redis has less
	Written   int64 // rows

	Took      time.Duration // what the last backups took that were due together
	Succeeded time.Time     // when none was due any more, last
}

// Backups takes backups into an archive. It is used by one goroutine.
type Backups struct {
	BackupConfig

	progress BackupProgress
	next     time.Time            // nothing is due before
	began    time.Time            // of what is due together
	later    map[string]time.Time // windows that wait, and until when
	reopened map[string]time.Time // windows that need none for now, and until when
	seen     map[string]seen      // windows as they were when they were last read
	said     map[string]bool      // windows of which it was logged why they wait
	rows     int                  // a transaction of the archive, or a part of what is sorted
	pace     time.Duration        // between two pages at least: tests alone
}

// NewBackups makes them. It talks to nobody.
func NewBackups(c BackupConfig) *Backups {
	if c.Reached == nil {
		c.Reached = func(BackupProgress) {}
	}
	return &Backups{BackupConfig: c, later: map[string]time.Time{}, reopened: map[string]time.Time{}, seen: map[string]seen{}, said: map[string]bool{}, rows: rowsOfAppend}
}

// Progress is how far they have come.
func (b *Backups) Progress() BackupProgress { return b.progress }

// backupsAgain is between two looks for windows that are due, at least.
const backupsAgain = time.Minute

// Pass takes the backups that are due, the longest due first. more says that its turn was over before
// all were. A window of which none can be taken leaves the others to be; the error says why. Where
// another leads the error is store.ErrFenced, and the pass ends.
func (b *Backups) Pass(ctx context.Context, f store.Fence) (more bool, err error) {
	began := time.Now()
	if began.Before(b.next) {
		return false, nil
	}
	if b.began.IsZero() {
		b.began = began
	}
	due, waiting, next, err := b.due(ctx)
	if err != nil {
		return false, fmt.Errorf("look of which windows backups are due: %w", err)
	}
	var failed []error
	for i := range due {
		if i > 0 && b.Turn > 0 && time.Since(began) > b.Turn {
			return true, errors.Join(failed...)
		}
		b.progress.Due, b.progress.Overdue = waiting.n+len(due)-i, max(waiting.by, due[i].by)
		waits, err := b.window(ctx, f, due[i].Window)
		switch {
		case ctx.Err() != nil || errors.Is(err, store.ErrFenced):
			return false, err
		case err != nil:
			failed = append(failed, err)
		}
		if waits || err != nil {
			waiting.add(due[i].by)
		}
		if len(failed) == mostFailed {
			break // it isn't about single windows
		}
	}
	if len(failed) == 0 {
		if _, err := b.Store.Sweep(ctx, f); err != nil {
			failed = append(failed, err)
		}
	}
	return false, b.end(began, len(due) > 0, waiting, next, failed)
}

// end reports what is left at the end of a pass.
func (b *Backups) end(began time.Time, did bool, waiting waiting, next time.Duration, failed []error) error {
	p := &b.progress
	p.Window, p.Read, p.Members, p.Rows = "", 0, 0, 0
	p.Due, p.Overdue = waiting.n, waiting.by
	b.next = began.Add(max(next, backupsAgain))
	if waiting.n > 0 || len(failed) > 0 {
		b.next = began.Add(backupsAgain)
	} else {
		if p.Succeeded = time.Now(); did {
			p.Took = time.Since(b.began)
		}
		b.began = time.Time{}
	}
	b.Reached(*p)
	return errors.Join(failed...)
}

// waiting is how many windows are due and can't have a backup yet, and for how long the first of them is.
type waiting struct {
	n  int
	by time.Duration
}

func (w *waiting) add(by time.Duration) { w.n, w.by = w.n+1, max(w.by, by) }

// dueWindow is a window whose backup is due, and for how long.
type dueWindow struct {
	ledger.Window
	by time.Duration
}

// due are the windows whose backups are due, but for those that wait, and in how long the first of the
// others is.
func (b *Backups) due(ctx context.Context) (due []dueWindow, wait waiting, next time.Duration, err error) {
	now, _, err := b.Boards.Clocks(ctx)
	if err != nil {
		return nil, wait, 0, err
	}
	kept := func(w ledger.Window) bool {
		_, ok := b.Lateness(w)
		_, has := b.Boards.Layout(w.Board, periods.Period(w.Period))
		return ok && has
	}
	live, err := b.Boards.Live(ctx, kept, listPause)
	if err != nil {
		return nil, wait, 0, err
	}
	asOf, err := b.asOf(ctx)
	if err != nil {
		return nil, wait, 0, err
	}
	next = b.Every
	listed := map[string]bool{}
	for _, w := range live {
		name := w.Listing()
		listed[name] = true
		at, there := asOf[name]
		if !there {
			at = time.UnixMilli(w.Start)
		}
		if at.After(now.Add(time.Minute)) && there {
			at = time.Time{} // Redis's clock was ahead, and isn't any more
		}
		switch in := at.Add(b.Every).Sub(now); {
		case in > 0:
			next = min(next, in)
		case b.reopened[name].After(time.Now()):
			next = min(next, time.Until(b.reopened[name]))
		case b.later[name].After(time.Now()):
			wait.add(-in)
		default:
			due = append(due, dueWindow{w, -in})
		}
	}
	b.forget(listed)
	slices.SortStableFunc(due, func(x, y dueWindow) int { return cmp.Compare(y.by, x.by) })
	return due, wait, next, nil
}

// forget lets go of what is known of windows that aren't listed any more, or are final.
func (b *Backups) forget(listed map[string]bool) {
	gone := func(name string) bool { return !listed[name] }
	maps.DeleteFunc(b.seen, func(name string, _ seen) bool { return gone(name) })
	maps.DeleteFunc(b.later, func(name string, _ time.Time) bool { return gone(name) })
	maps.DeleteFunc(b.reopened, func(name string, _ time.Time) bool { return gone(name) })
	maps.DeleteFunc(b.said, func(name string, _ bool) bool { return gone(name) })
}

// asOf is of when the backups are that the archive has, by window.
func (b *Backups) asOf(ctx context.Context) (map[string]time.Time, error) {
	all := map[string]time.Time{}
	const atOnce = 500
	for at := (store.Place{}); ; {
		some, err := b.Store.Windows(ctx, store.Filter{Backups: true}, at, atOnce)
		if err != nil {
			return nil, err
		}
		for i := range some {
			w := &some[i]
			all[ledger.Window{Board: w.Board, Period: w.Period, Name: w.Name}.Listing()] = w.AsOf
			at = w.Place()
		}
		if len(some) < atOnce {
			return all, nil
		}
	}
}

// passes reports whether an error of a shard is one that goes by itself.
func passes(err error) bool {
	return errors.Is(err, ranking.ErrSnapshotBusy) || errors.Is(err, ranking.ErrRebuilding) || errors.Is(err, ranking.ErrSnapshotLost) || errors.Is(err, ranking.ErrUnsettled)
}
