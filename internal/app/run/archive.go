package run

// Archiving, a job of the leader.

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/archive"
	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/jobs"
	"github.com/standings/standings/internal/ranking/boards"
)

const (
	// archiveEvery is the interval between two passes if no window is sealed meanwhile.
	archiveEvery = time.Minute
	// backupTurn is how long the job takes backups before it looks for final windows again.
	backupTurn = 10 * time.Second
)

var (
	archiveWaiting = prometheus.NewDesc("standings_archive_waiting_windows",
		"Final windows that are not archived yet. Reported by the leader.", nil, nil)
	archiveOldest = prometheus.NewDesc("standings_archive_waiting_seconds",
		"Time since the first window that is not archived became final; 0 if none. Reported by the leader.", nil, nil)
	archiveOverdue = prometheus.NewDesc("standings_archive_backup_overdue_seconds",
		"How long the backup of a complete open window has been due: the longest, 0 if none. Reported by the leader.", nil, nil)
)

func setArchived(r *reported, p archive.Progress) {
	r.set(gauge(archiveWaiting, float64(p.Waiting)), gauge(archiveOldest, waited(p.Oldest)), gauge(archiveOverdue, p.Overdue.Seconds()))
}

// waited returns for how many seconds something has waited; 0 if nothing waits.
func waited(since time.Time) float64 {
	if since.IsZero() {
		return 0
	}
	return max(0, time.Since(since).Seconds())
}

// writer is the archive to which this process writes, in all of its terms as leader.
type writer struct {
	cfg   *config.Config
	is    *reported
	log   *zap.Logger
	store *store.Store // nil until it is open; one run of the job at a time uses it
	// ready is the store once this process has written to it.
	ready atomic.Pointer[store.Store]
	// news changes when a final window was copied, and when a pass has ended.
	news atomic.Int64
}

// close is called after the last term.
func (w *writer) close() {
	if w.store != nil {
		_ = w.store.Close() // no call is in flight
	}
}

// archiveWindows returns the job that copies windows to the archive, for one term. Each run opens the archive
// again if it is unavailable.
func (w *writer) archiveWindows(all *boards.Boards, fields func(board string) []codec.Field, t jobs.Term) jobs.Job {
	fence := store.Fence{Token: t.Token, Owner: t.Owner}
	copied := int64(0)
	taker := archive.New(archive.Config{
		Boards: all, Lateness: app.Lateness(w.cfg), Zone: app.Zones(w.cfg), Fields: fields,
		Interval: w.cfg.Archive.Interval, Turn: backupTurn, Log: w.log,
		Progress: func(p archive.Progress) {
			setArchived(w.is, p)
			if p.Final.Windows > copied {
				copied = p.Final.Windows
				w.news.Add(1)
			}
		},
	})
	return jobs.Job{Name: "archive", Every: archiveEvery, Version: all.Seals, Run: func(ctx context.Context) (next time.Duration, err error) {
		if taker.Store == nil {
			if err := w.take(ctx, fence); err != nil {
				return 0, app.Fenced(ctx, w.store, err)
			}
			taker.Store = w.store
		}
		err = taker.Pass(ctx, fence)
		setArchived(w.is, taker.Reached())
		w.news.Add(1)
		if taker.Reached().More {
			next = time.Millisecond // the pass ended early
		}
		return next, app.Fenced(ctx, w.store, err)
	}}
}

// take opens the archive, migrates its schema to this program's version, and fences every earlier leader.
func (w *writer) take(ctx context.Context, f store.Fence) (err error) {
	if w.store == nil {
		if w.store, err = app.OpenArchive(ctx, w.cfg); err != nil {
			return fmt.Errorf("open the archive: %w", err)
		}
	}
	if err := w.store.Migrate(ctx); err != nil {
		return fmt.Errorf("prepare the archive: %w", err)
	}
	if err := w.store.Take(ctx, f); err != nil {
		return err
	}
	w.ready.Store(w.store)
	return nil
}
