package run

// Backups of windows that take events still, which the leader takes beside the final ones.

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/archive"
	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/retry"
)

var (
	backupSuccess = prometheus.NewDesc("standings_archive_backup_last_success_timestamp_seconds",
		"When every window that takes events still had a backup in the archive that isn't older than archive.interval, last, Unix time. The leader reports it, where there are backups.", nil, nil)
	backupDue = prometheus.NewDesc("standings_archive_backup_due_windows",
		"Windows whose backup is due, those too that have to wait. The leader reports it.", nil, nil)
	backupOverdue = prometheus.NewDesc("standings_archive_backup_overdue_seconds",
		"For how long the first of those has been due; 0 where none is. The leader reports it.", nil, nil)
	backupTook = prometheus.NewDesc("standings_archive_backup_seconds",
		"How long the last backups took that were due together. The leader reports it.", nil, nil)
	backupRows = prometheus.NewDesc("standings_archive_backup_rows_written",
		"Rows of backups that this replica has written since it leads. The leader reports it.", nil, nil)
	backupWindows = prometheus.NewDesc("standings_archive_backup_windows",
		"Windows that were backed up since this replica leads, by result: written; unchanged, so that the backup before is as of now; kept, as Redis has lost what the backup before has. The leader reports it.", []string{"result"}, nil)
)

func newBackedUp() *reported {
	return newReported(backupSuccess, backupDue, backupOverdue, backupTook, backupRows, backupWindows)
}

func backupMetrics(p archive.BackupProgress) []prometheus.Metric {
	all := []prometheus.Metric{
		gauge(backupDue, float64(p.Due)), gauge(backupOverdue, p.Overdue.Seconds()), gauge(backupRows, float64(p.Written)),
		gauge(backupWindows, float64(p.Taken), "written"), gauge(backupWindows, float64(p.Unchanged), "unchanged"), gauge(backupWindows, float64(p.Kept), "kept"),
	}
	if p.Took > 0 {
		all = append(all, gauge(backupTook, p.Took.Seconds()))
	}
	if !p.Succeeded.IsZero() {
		all = append(all, gauge(backupSuccess, float64(p.Succeeded.Unix())))
	}
	return all
}

// backups takes those that are due, while this replica leads.
type backups struct {
	taker  *archive.Backups // nil: there are none
	is     *reported
	log    *zap.Logger
	failed retry.LogLimit
}

// backupTurn is for how long backups are taken before final windows are looked for again.
const backupTurn = time.Minute

func newBackups(c archive.Config, every time.Duration, is *reported, log *zap.Logger) *backups {
	b := &backups{is: is, log: log}
	if every > 0 {
		reached := func(p archive.BackupProgress) { is.set(backupMetrics(p)...) }
		reached(archive.BackupProgress{})
		b.taker = archive.NewBackups(archive.BackupConfig{Config: c, Every: every, Turn: backupTurn, Reached: reached})
	}
	return b
}

// pass takes some. more says that there are others; the error is store.ErrFenced, or of the context's end.
func (b *backups) pass(ctx context.Context, f store.Fence) (more bool, err error) {
	if b.taker == nil {
		return false, nil
	}
	more, err = b.taker.Pass(ctx, f)
	switch {
	case err == nil:
		b.failed.Reset()
	case ctx.Err() != nil || errors.Is(err, store.ErrFenced):
		return false, err
	case b.failed.Due(time.Hour):
		b.log.Warn("couldn't take all backups that are due: those before stay, and it is tried again", zap.Error(err))
	}
	b.is.set(backupMetrics(b.taker.Progress())...)
	return more, nil
}
