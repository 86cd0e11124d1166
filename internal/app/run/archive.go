package run

// Final windows are taken into the archive by one replica of all, the leader.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/app"
	"github.com/standings/standings/internal/archive"
	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/lease"
	"github.com/standings/standings/internal/ranking/boards"
	"github.com/standings/standings/internal/retry"
)

const (
	// archiveEvery is between two looks for windows that aren't in the archive.
	archiveEvery = time.Minute
	// backupTurn is how long backups are taken before final windows are looked for again.
	backupTurn = time.Minute
	// leaderLease is how long a leader that died goes on being it.
	leaderLease = 15 * time.Second
)

var (
	archiveLeader  = prometheus.NewDesc("standings_archive_leader", "1 if this replica writes the archive, else 0. Only with archive.url.", nil, nil)
	archiveWaiting = prometheus.NewDesc("standings_archive_waiting_windows",
		"Final windows that are not archived yet. Reported by the leader.", nil, nil)
	archiveOldest = prometheus.NewDesc("standings_archive_waiting_seconds",
		"Time since the first window that is not archived became final; 0 if none. Reported by the leader.", nil, nil)
	archiveOverdue = prometheus.NewDesc("standings_archive_backup_overdue_seconds",
		"How long the backup of a complete open window has been due: the longest, 0 if none. Reported by the leader.", nil, nil)
)

// archived is what is reported of the archive.
type archived struct{ *reported }

func newArchived() *archived {
	return &archived{newReported(archiveLeader, archiveWaiting, archiveOldest, archiveOverdue)}
}

// follows is what a replica reports that doesn't lead.
func (a *archived) follows() { a.set(gauge(archiveLeader, 0)) }

func (a *archived) leads(p archive.Progress) {
	oldest := 0.0
	if !p.Oldest.IsZero() {
		oldest = max(0, time.Since(p.Oldest).Seconds())
	}
	a.set(gauge(archiveLeader, 1), gauge(archiveWaiting, float64(p.Waiting)), gauge(archiveOldest, oldest), gauge(archiveOverdue, p.Overdue.Seconds()))
}

// archiver writes the archive while this replica leads.
type archiver struct {
	cfg *config.Config
	all *boards.Boards
	is  *archived
	log *zap.Logger
	// sealed has something once this replica has sealed windows: nobody waits a minute for them.
	sealed <-chan struct{}
	passed chan struct{} // has something once a pass has ended

	owner string
	store *store.Store
}

// watchArchive returns when the context ends, and nothing is written any more. An archive that can't
// be reached holds up nothing else.
func (p *process) watchArchive(ctx context.Context, cfg *config.Config, all *boards.Boards) {
	if cfg.Archive.URL == "" {
		p.publishAlone(ctx, cfg, all)
		return
	}
	a := &archiver{cfg: cfg, all: all, is: p.ops.archived, log: p.log, sealed: p.sealed, owner: lease.NewOwner(), passed: make(chan struct{}, 1)}
	defer a.is.none()
	a.is.follows()
	if a.store = a.open(ctx); a.store == nil {
		return
	}
	defer a.store.Close() //nolint:errcheck // nothing is in flight any more
	f := p.finalTopic(cfg, all, a.store, a.passed)
	defer f.is.none()
	l := lease.Lease{Redis: all.Shards()[0], Owner: a.owner, Length: leaderLease, Floor: a.store.Floor, Log: p.log.Named("archive")}
	if err := l.Run(ctx, beside(a.lead, f.lead)); err != nil {
		p.log.Error("nothing is archived", zap.Error(err)) // a lease that can't be one: a bug
	}
}

// open waits until the archive can be opened; nil once the context has ended.
func (a *archiver) open(ctx context.Context) *store.Store {
	var said retry.LogLimit
	for pauses := (retry.Policy{First: time.Second, Longest: archiveEvery}).Start(); ; {
		s, err := app.OpenArchive(ctx, a.cfg)
		if err == nil {
			return s
		}
		if ctx.Err() != nil {
			return nil
		}
		if said.Due(archiveEvery) {
			a.log.Warn("could not open the archive: final windows stay in Redis until then", zap.Error(err))
		}
		if pauses.Next(ctx) != nil {
			return nil
		}
	}
}

// lead archives while this replica leads.
func (a *archiver) lead(ctx context.Context, token int64) error {
	defer a.is.follows()
	fence := store.Fence{Token: token, Owner: a.owner}
	if err := a.store.Migrate(ctx); err != nil {
		return fmt.Errorf("prepare the archive: %w", err)
	}
	if err := a.store.Take(ctx, fence); err != nil {
		return err
	}
	fields, err := app.ArchivedFields(a.cfg)
	if err != nil {
		return err
	}
	taker := archive.New(archive.Config{
		Boards: a.all, Store: a.store, Lateness: app.Lateness(a.cfg), Zone: app.Zones(a.cfg), Fields: fields,
		Interval: a.cfg.Archive.Interval, Turn: backupTurn, Progress: a.is.leads, Log: a.log,
	})
	a.is.leads(archive.Progress{})
	failed := false
	for {
		err := taker.Pass(ctx, fence)
		switch {
		case ctx.Err() != nil || errors.Is(err, store.ErrFenced):
			return err
		case err != nil && !failed:
			a.log.Warn("could not archive all windows: they stay in Redis and are retried", zap.Error(err))
		}
		failed = err != nil
		a.is.leads(taker.Reached())
		signal(a.passed)
		if taker.Reached().More {
			continue
		}
		select {
		case <-time.After(archiveEvery):
		case <-a.sealed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
