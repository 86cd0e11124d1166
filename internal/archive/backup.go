package archive

// One backup. A window that takes events still changes while it is read: members move past whoever
// reads it by rank, and would be in the copy twice, or not at all. So it is read as a snapshot is
// (archive/snapshot), by a scan, which finds everybody who is there all the time; who was found twice
// counts once, and ranks are given after that, by the database that has them then.
//
// What a backup is: as of the moment at which it was begun, whoever was in the window is in it, once,
// with every event that counted by then, which is what its ledger says. Rows are read in the seconds or
// minutes after that, so a row may have later events, up to the moment at which the last was read
// (Until), and who came first in that time may be in it or not. Ranks are those of the rows.
//
// What can happen meanwhile:
//
//   - Redis goes back, or a rebuild swaps: the tokens that were set with the first ledgers are gone,
//     and the rows that were read are of no use (ranking.ErrSnapshotLost). They are read anew later.
//   - Redis went back, or was lost, since the backup before: it counts less than that, and mustn't
//     replace it. Either it catches up, or it never has again what the backup has.
//   - Bans change, or the window is sealed: it is begun anew on that shard. A final window has no backup.
//   - This leader is paused, and another one leads: what it writes then is refused (store.ErrFenced), and
//     the copy that it had begun is dropped by the next one's.

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/retry"
)

const (
	// backupLease is how long a leader that died keeps others from reading pages of a shard.
	backupLease = time.Minute
	// Between two pages it waits for backupWaits times as long as the page took: Redis has four fifths of its
	// time for events, and a millisecond or so at once goes for the backup.
	backupWaits = 4
)

// seen is a window as of its backup: where the shards have counted as far, nothing is in it that wasn't.
type seen struct {
	backup int64 // its id
	shards [sha256.Size]byte
}

// backup is one under way.
type backup struct {
	*Backups
	window ledger.Window
	old    *store.Window // the backup before; nil
	shards []*ranking.Snapshot
	looked time.Time // when the shards were last kept waiting
	sorter *store.Sorter
	until  int64 // Unix ms
	there  bool  // a shard lists it
	waits  bool
}

// window takes the backup of one, or has it wait.
func (b *Backups) window(ctx context.Context, f store.Fence, w ledger.Window) (waits bool, err error) {
	name := w.Listing()
	b.progress.Window, b.progress.Read, b.progress.Members, b.progress.Rows = name, 0, 0, 0
	one := &backup{Backups: b, window: w, looked: time.Now()}
	old, err := b.Store.Window(ctx, w.Board, w.Period, w.Name)
	switch {
	case err == nil && old.Final():
		// It was reopened. What was final is shown until the next revision is, which comes soon.
		b.reopened[name] = time.Now().Add(max(b.Every, backupsAgain))
		return false, nil
	case err == nil:
		one.old = &old
	case !errors.Is(err, store.ErrNotFound):
		return false, err
	}
	err = one.take(ctx, f)
	if err != nil && !errors.Is(err, store.ErrFenced) && passes(err) {
		one.wait(backupsAgain, "a backup can't be taken now, and is tried again", zap.Error(err))
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("back up %s: %w", name, err)
	}
	return one.waits, err
}

func (o *backup) take(ctx context.Context, f store.Fence) error {
	began := time.Now()
	defer func() { o.close(ctx) }()
	now, shards, err := o.begin(ctx)
	if err != nil {
		return err
	}
	name := o.window.Listing()
	if field := o.behind(now); field != "" && !o.Replace {
		o.wait(backupsAgain, "Redis has counted less than the backup of a window: it stays until Redis has caught up",
			zap.String("partition", field), zap.Time("as_of", o.old.AsOf), zap.String("counted", now.Ledger[field]), zap.String("in_the_backup", o.old.Ledger[field]))
		return nil
	}
	if o.old != nil && o.seen[name] == (seen{o.old.ID, shards}) {
		now.Until = now.AsOf
		return o.unchanged(ctx, f, now, shards)
	}
	if o.sorter, err = o.Store.Sorter(ctx); err != nil {
		return err
	}
	defer o.sorter.Close()
	if err := o.read(ctx); err != nil {
		return err
	}
	o.close(ctx) // what follows is the archive's
	if now.Members, err = o.sorter.Sort(ctx); err != nil {
		return err
	}
	o.progress.Members = now.Members
	ok, err := o.describe(ctx, now)
	if err != nil || !ok {
		return err
	}
	if o.lessThanBefore(now) && !o.Replace {
		o.progress.Kept++
		o.wait(max(o.Every, backupsAgain), "Redis has lost events of a window that its backup has: that stays",
			zap.Time("as_of", o.old.AsOf), zap.Int64("members", now.Members), zap.Int64("in_the_backup", o.old.Members), zap.Strings("incomplete", now.Incomplete))
		return nil
	}
	same, err := o.same(ctx, now)
	if err != nil {
		return err
	}
	if same {
		return o.unchanged(ctx, f, now, shards)
	}
	id, err := o.write(ctx, f, now)
	if err != nil {
		return err
	}
	o.progress.Taken++
	o.seen[name] = seen{id, shards}
	delete(o.said, name)
	o.Log.Info("a window has a backup", zap.String("window", name), zap.Time("as_of", now.AsOf), zap.Int64("members", now.Members), zap.Duration("took", time.Since(began)))
	return nil
}

// wait has the window be looked at again later, and says once why.
func (o *backup) wait(again time.Duration, why string, fields ...zap.Field) {
	name := o.window.Listing()
	o.waits, o.later[name] = true, time.Now().Add(again)
	if !o.said[name] {
		o.said[name] = true
		o.Log.Warn(why, append([]zap.Field{zap.String("window", name)}, fields...)...)
	}
}

// begin sets the shards' tokens. shards is a hash of how far each has counted, and by which bans.
func (o *backup) begin(ctx context.Context) (now *store.Window, shards [sha256.Size]byte, err error) {
	w := o.window
	now = &store.Window{Board: w.Board, Period: w.Period, Name: w.Name, Start: time.UnixMilli(w.Start), End: time.UnixMilli(w.End),
		Fields: o.Fields(w.Board), Zone: o.Zone(w.Period)}
	var states []ledger.State
	var text strings.Builder
	for _, s := range o.Boards.Shards() {
		sn, err := s.BeginSnapshot(ctx, backupLease)
		if err != nil {
			return nil, shards, err
		}
		o.shards = append(o.shards, sn)
		states = append(states, ledger.State{Ledger: sn.Begin.Ledger})
		if at := time.UnixMilli(sn.Begin.Now); now.AsOf.IsZero() || at.Before(now.AsOf) {
			now.AsOf = at
		}
		o.until = max(o.until, sn.Begin.Now)
		fmt.Fprintln(&text, sn.Begin.Ledger, sn.Begin.Origins, sn.Begin.Bans())
	}
	now.Ledger = ledger.Together(states).Ledger
	return now, sha256.Sum256([]byte(text.String())), nil
}

// close lets others read pages of the shards.
func (o *backup) close(ctx context.Context) {
	for _, sn := range o.shards {
		sn.Close(context.WithoutCancel(ctx))
	}
	o.shards = nil
}

// behind is a partition of which less is counted now than in the backup before; empty if there is none.
func (o *backup) behind(now *store.Window) string {
	if o.old == nil {
		return ""
	}
	for field, before := range o.old.Ledger {
		if ledger.ComparePositions(now.Ledger[field], before) < 0 {
			return field
		}
	}
	return ""
}

// lessThanBefore reports that Redis was lost since the backup before, and made from a log that doesn't have
// all any more: the window lacks records that it didn't lack then, and members too. Where records were
// lost that neither has, members are as many or more.
func (o *backup) lessThanBefore(now *store.Window) bool {
	return o.old != nil && now.Members < o.old.Members &&
		slices.ContainsFunc(now.Incomplete, func(field string) bool { return !slices.Contains(o.old.Incomplete, field) })
}

// read reads who is shown, shard by shard, for the sorter.
func (o *backup) read(ctx context.Context) error {
	some := make([]store.Scored, 0, o.rows)
	for i, sn := range o.shards {
		some = some[:0]
		asked := time.Now()
		if err := sn.Window(ctx, o.window.Listing(), func(p *ranking.SnapshotPage) error {
			took := time.Since(asked)
			if p.First || p.Gone { // what was read before doesn't count
				some = some[:0]
				if err := o.sorter.Drop(ctx, i); err != nil {
					return err
				}
			}
			o.there = o.there || !p.Gone
			o.until = max(o.until, p.Now)
			for _, row := range p.Rows {
				some = append(some, store.Scored{Member: row.Member, Score: row.Score})
			}
			if len(some) >= o.rows {
				if err := o.add(ctx, i, &some); err != nil {
					return err
				}
			}
			if err := o.keep(ctx, i); err != nil {
				return err
			}
			if err := retry.Sleep(ctx, max(backupWaits*took, o.pace)); err != nil {
				return err
			}
			asked = time.Now()
			return nil
		}); err != nil {
			return err
		}
		if err := o.add(ctx, i, &some); err != nil {
			return err
		}
	}
	return nil
}

func (o *backup) add(ctx context.Context, shard int, some *[]store.Scored) error {
	if err := o.sorter.Add(ctx, shard, *some); err != nil {
		return err
	}
	o.progress.Read += int64(len(*some))
	o.Reached(o.progress)
	*some = (*some)[:0]
	return nil
}

// keep keeps the tokens of the shards that aren't read now.
func (o *backup) keep(ctx context.Context, read int) error {
	if time.Since(o.looked) < backupLease/4 {
		return nil
	}
	o.looked = time.Now()
	for i, sn := range o.shards {
		if i == read {
			continue
		}
		if _, err := sn.Look(ctx); err != nil {
			return err
		}
	}
	return nil
}

// describe fills in what else there is to say of a window that was read; false where there is none to be
// backed up any more: it is final, or isn't there.
func (o *backup) describe(ctx context.Context, now *store.Window) (bool, error) {
	w := periods.Window{Period: periods.Period(o.window.Period), Name: o.window.Name, Start: o.window.Start, End: o.window.End}
	b, err := o.Boards.Top(ctx, o.window.Board, w, 0, 0)
	switch {
	case err != nil:
		return false, err
	case b.Lost != "":
		return false, fmt.Errorf("Redis has lost it (%s)", b.Lost)
	case !b.Listed || !o.there || b.Revision > 0:
		return false, nil
	}
	now.Until, now.Tick, now.Incomplete = time.UnixMilli(o.until), b.Tick, b.Incomplete
	now.MaxPoints = o.mostPoints(o.window.Board, o.window.Period)
	return true, nil
}

// same reports whether the backup before has the very same rows.
func (o *backup) same(ctx context.Context, now *store.Window) (bool, error) {
	old := o.old
	if old == nil || old.Members != now.Members || old.Tick != now.Tick || !slices.Equal(old.Fields, now.Fields) ||
		old.Zone != now.Zone || !old.Start.Equal(now.Start) || !old.End.Equal(now.End) {
		return false, nil
	}
	var sum store.Checksum
	err := o.each(ctx, func(r *store.Row) error {
		sum.Add(r, len(now.Fields))
		return nil
	})
	return err == nil && sum == old.Checksum, err
}

// unchanged has the backup before be as of now.
func (o *backup) unchanged(ctx context.Context, f store.Fence, now *store.Window, shards [sha256.Size]byte) error {
	now.Tick, now.Members = o.old.Tick, o.old.Members
	if now.Incomplete == nil {
		now.Incomplete = o.old.Incomplete
	}
	if err := o.Store.Touch(ctx, f, o.old.ID, now); err != nil {
		return err
	}
	o.progress.Unchanged++
	o.seen[o.window.Listing()] = seen{o.old.ID, shards}
	return nil
}

// each gives the rows that were sorted, as the archive has them.
func (o *backup) each(ctx context.Context, do func(*store.Row) error) error {
	layout, ok := o.Boards.Layout(o.window.Board, periods.Period(o.window.Period))
	if !ok {
		return fmt.Errorf("the board has no period %s", o.window.Period)
	}
	return o.sorter.Each(ctx, func(rank int64, m *store.Scored) error {
		tuple, ticks, err := layout.Decode(m.Score)
		if err != nil {
			return fmt.Errorf("score of %q: %w", m.Member, err)
		}
		return do(&store.Row{Rank: rank, Member: m.Member, Tuple: tuple, Score: m.Score, ReachedAt: layout.Time(o.window.Start, o.window.End, ticks)})
	})
}

// write writes the copy, which replaces the backup before once it is whole.
func (o *backup) write(ctx context.Context, f store.Fence, now *store.Window) (id int64, err error) {
	w, err := o.Store.Begin(ctx, f, *now)
	if err != nil {
		return 0, err
	}
	rows := make([]store.Row, 0, o.rows)
	add := func() error {
		before := w.Written()
		if err := w.Append(ctx, rows); err != nil {
			return err
		}
		o.progress.Rows = w.Written()
		o.progress.Written += w.Written() - before
		o.Reached(o.progress)
		rows = rows[:0]
		return nil
	}
	err = o.each(ctx, func(r *store.Row) error {
		if rows = append(rows, *r); len(rows) == cap(rows) {
			return add()
		}
		return nil
	})
	if err == nil && len(rows) > 0 {
		err = add()
	}
	if err == nil {
		err = w.Finish(ctx)
	}
	if err != nil && (errors.Is(err, store.ErrDiffers) || errors.Is(err, store.ErrInvalid)) {
		err = errors.Join(err, w.Discard(ctx))
	}
	return w.Window().ID, err
}

// mostPoints is how many points a member can have in a window, by the default rule; else 0.
func (c *Config) mostPoints(board, period string) int64 {
	layout, ok := c.Boards.Layout(board, periods.Period(period))
	if c.Fields(board) != nil || !ok || layout.Packing.Fields.Len() == 0 {
		return 0
	}
	return layout.Packing.Fields.At(0).Max
}
