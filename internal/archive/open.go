package archive

// Backups: copies of open windows.
//
// An open window changes while it is read. A reader that reads by rank would find members that move twice, or not
// at all. So the archiver reads the window by a scan, which returns every member that is present throughout at
// least once, and the database assigns ranks once all rows are in (store.Writing.Finish).
//
// Every row includes at least the events counted when the copy began, which is the state in its ledger. A Redis
// server that loses some of these meanwhile has restarted or failed over, and then the copy fails
// (boards.OnSameServers). A row may include later events, and the copy may or may not have members that appeared
// meanwhile.
//
// The archiver copies a window only if it is complete at that moment; otherwise the window's last backup stays. So
// after a loss of Redis, if the log is too short to restore a window, the incomplete rest never replaces an
// earlier backup.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ledger/workers"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/retry"
)

// scanWaits is the length of the pause after each page, as a multiple of the time that the page took. It leaves
// four fifths of Redis's time for events.
const scanWaits = 4

// dueBackup is a window whose backup is due, and how long it has been due.
type dueBackup struct {
	ledger.Window
	by time.Duration
}

// takeBackups takes the backups that are due, the most overdue first.
func (a *Archiver) takeBackups(ctx context.Context, f store.Fence, open []ledger.Window) error {
	began := time.Now()
	due, err := a.due(ctx, open)
	if err != nil {
		return fmt.Errorf("find backups that are due: %w", err)
	}
	var left []dueBackup
	var failed []error
	for i, d := range due {
		a.progress.More = i > 0 && a.Turn > 0 && time.Since(began) > a.Turn
		if a.progress.More || len(failed) == mostFailed {
			left = append(left, due[i:]...)
			break
		}
		a.overdue(append(left[:len(left):len(left)], due[i:]...))
		switch err := a.archive(ctx, f, &boards.Closed{Window: d.Window}); {
		case ctx.Err() != nil || errors.Is(err, store.ErrFenced):
			return err
		case errors.Is(err, ErrChanged):
			left = append(left, d)
		case errors.Is(err, errIncomplete):
			a.progress.Incomplete++
		case err != nil:
			left, failed = append(left, d), append(failed, err)
		}
	}
	a.overdue(left)
	return errors.Join(failed...)
}

func (a *Archiver) overdue(due []dueBackup) {
	a.progress.Due, a.progress.Overdue = len(due), 0
	for _, d := range due {
		a.progress.Overdue = max(a.progress.Overdue, d.by)
	}
}

// due returns the windows whose backups are due by Redis's clock, the most overdue first.
func (a *Archiver) due(ctx context.Context, open []ledger.Window) (due []dueBackup, err error) {
	if a.backups == nil {
		if a.backups, err = a.readBackups(ctx); err != nil {
			return nil, err
		}
	}
	now, _, err := a.Boards.Clocks(ctx)
	if err != nil {
		return nil, err
	}
	state, err := a.Boards.State(ctx)
	if err != nil {
		return nil, err
	}
	a.progress.Incomplete = 0
	for _, w := range open {
		if _, has := a.Boards.Layout(w.Board, periods.Period(w.Period)); !has {
			continue
		}
		at, there := a.backups[w.Listing()]
		if !there || at.After(now.Add(a.Interval)) { // or Redis's clock was ahead at the last backup
			at = time.UnixMilli(w.Start)
		}
		by := now.Sub(at) - a.Interval
		if by < 0 {
			continue
		}
		if complete, err := complete(&state, &w); err != nil {
			return nil, err
		} else if !complete {
			a.progress.Incomplete++
			continue
		}
		due = append(due, dueBackup{w, by})
	}
	slices.SortStableFunc(due, func(x, y dueBackup) int { return cmp.Compare(y.by, x.by) })
	return due, nil
}

// readBackups returns the times of the backups in the archive, by window.
func (a *Archiver) readBackups(ctx context.Context) (map[string]time.Time, error) {
	all := map[string]time.Time{}
	const atOnce = 500
	for at := (store.Place{}); ; {
		some, err := a.Store.Windows(ctx, store.Filter{Backups: true}, at, atOnce)
		if err != nil {
			return nil, err
		}
		for i := range some {
			w := &some[i]
			all[ledger.Window{Board: w.Board, Period: w.Period, Name: w.Name}.Listing()], at = w.AsOf, w.Place()
		}
		if len(some) < atOnce {
			return all, nil
		}
	}
}

// errIncomplete reports that a window is no longer complete.
var errIncomplete = errors.New("the window is not complete")

// complete reports whether no record that belongs in the window is missing, and Redis is not being refilled.
func complete(st *ledger.State, w *ledger.Window) (bool, error) {
	incomplete, err := ranking.Incomplete(st, w.Board, w.Period, w.Start)
	return len(incomplete) == 0 && len(workers.Of(st, nil).Refilling) == 0, err
}

// writeOpen writes the backup of an open window. It returns nil for a window that was reopened, which needs no
// backup: the archive shows its last revision until the next one.
func (a *Archiver) writeOpen(ctx context.Context, f store.Fence, c *boards.Closed) (is *store.Window, err error) {
	newest, err := a.Store.Window(ctx, c.Board, c.Period, c.Name)
	if err == nil && newest.Final() {
		return nil, nil
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	err = a.Boards.OnSameServers(ctx, func() error {
		first, err := a.look(ctx, c)
		if err != nil {
			return err
		}
		if complete, err := complete(&first.Beside, &c.Window); err != nil || !complete {
			return errors.Join(err, errIncomplete)
		}
		w, err := a.Store.Begin(ctx, f, a.describe(&begun{Closed: c, first: first}))
		if err == nil {
			is, err = a.finish(ctx, c, w, a.scan(ctx, c))
		}
		return err
	})
	return is, err
}

// scan returns the rows of an open window, in no order and numbered from 1. A member may occur several times.
func (a *Archiver) scan(ctx context.Context, c *boards.Closed) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		fields, place := a.Fields(c.Board) != nil, int64(0)
		found := func(some []ranking.Standing, hidden bool) bool {
			for i := range some {
				place++
				rank := place
				if hidden {
					rank = 0
				}
				if !yield(row(fields, &some[i], place, rank), nil) {
					return false
				}
			}
			return true
		}
		for _, s := range a.Boards.Shards() {
			more, err := a.scanShard(ctx, c, s, found)
			if err != nil {
				yield(store.Row{}, err)
			}
			if err != nil || !more {
				return
			}
		}
		// If the window was dropped or lost meanwhile, the scan may have ended early.
		if _, err := a.look(ctx, c); err != nil {
			yield(store.Row{}, err)
		}
	}
}

// scanShard scans the shown members of a shard. It reads the hidden members first, and again after each page if
// the bans have changed. So it also finds a member that was hidden before the scan reached it.
func (a *Archiver) scanShard(ctx context.Context, c *boards.Closed, s *ranking.Store, found func(some []ranking.Standing, hidden bool) bool) (more bool, err error) {
	bans, read := "", false
	hidden := func() (bool, error) {
		now, err := s.BanVersion(ctx)
		if err != nil || read && now == bans {
			return true, err
		}
		bans, read = now, true
		for page, err := range scanPages(ctx, c, s, true) {
			if err != nil || !found(page, true) {
				return false, err
			}
		}
		return true, nil
	}
	if more, err = hidden(); err != nil || !more {
		return more, err
	}
	for page, err := range scanPages(ctx, c, s, false) {
		if err != nil {
			return false, err
		}
		if more, err := hidden(); err != nil || !more {
			return more, err
		}
		if !found(page, false) {
			return false, nil
		}
	}
	return true, nil
}

// scanPages scans one of the two sets of a window on a shard, and pauses after each page.
func scanPages(ctx context.Context, c *boards.Closed, s *ranking.Store, hidden bool) iter.Seq2[[]ranking.Standing, error] {
	return func(yield func([]ranking.Standing, error) bool) {
		for cursor := uint64(0); ; {
			asked := time.Now()
			page, next, err := s.ScanMembers(ctx, c.Board, windowOf(c), hidden, cursor)
			took := time.Since(asked)
			if !yield(page, err) || err != nil {
				return
			}
			if cursor = next; cursor == 0 {
				return
			}
			if err := retry.Sleep(ctx, scanWaits*took); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}
