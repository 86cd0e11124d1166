// Package archive takes final windows from Redis into the archive, where they stay once Redis and
// Kafka don't have them any more.
//
//	closed windows ─▶ final, and not in the archive ─▶ page by page ─▶ a copy that is whole
//	               └▶ about to expire, and not in it ─▶ they stay in Redis for longer
//
// One process of all does so, the leader (archive/lease), and what it writes is fenced by its token
// (archive/store). A final window doesn't change, so that whoever takes over finds the rows that are
// in, and goes on from there. Each page is one short read of Redis, and after each the archiver waits for
// as long as the read took: it has Redis for half of the time at most, a millisecond or so at once.
//
// What changes a final window all the same:
//
//   - A ban hides a member, or shows one: rows move up or down. A copy whose rows aren't as many as
//     members were when it began is dropped and taken anew.
//   - It is reopened: its listing has no revision any more, every page is looked at for that. The
//     copy isn't finished; the next seal's is another revision's.
//   - Redis goes back to before the seal, or is lost and rebuilt: the window is sealed again, of the
//     same revision, and may have other standings (docs/guarantees.md, "Final windows"). The archive's
//     are what people have been shown: they stay. If Redis has the same rows, all is well. If not, the
//     seal is taken back, so that the next one is of the next revision, and is archived as that.
package archive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/boards"
)

// Config is what an Archiver is made of.
type Config struct {
	Boards *boards.Boards
	Store  *store.Store
	// Lateness is how long after its end a window takes events; false where it is none of a period
	// that is kept.
	Lateness func(ledger.Window) (time.Duration, bool)
	// Zone is what the times of a period are shown in, IANA.
	Zone func(period string) string
	// Fields are those of a board by a rule of its own, most significant first; nil by the default rule.
	Fields func(board string) []codec.Field
	// Progress, where there is one, is called after every page, and at the end of a pass.
	Progress func(Progress)
	Log      *zap.Logger
}

// Progress is how far a pass has come.
type Progress struct {
	Window  string // that is being taken: board:period:name; empty at the end of a pass
	Rows    int64  // of it that are in the archive
	Members int64  // how many it has
	Written int64  // rows that this archiver has written so far, of all windows
	Taken   int64  // windows that it has
	// Waiting is how many final windows aren't in the archive yet, that one too; NotFinal how many
	// take no events any more and aren't final yet.
	Waiting  int
	NotFinal int
	// Oldest is when the first of those that wait was sealed; zero where none does.
	Oldest time.Time
}

// Archiver takes final windows into an archive. It is used by one goroutine.
type Archiver struct {
	Config

	kept     map[string]int64 // by window: the revision that is in the archive, as far as is known
	progress Progress
	pages    int // rows a read of Redis
	append   int // rows a transaction of the archive
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
	// Windows that expire within staysWhen and aren't in the archive stay for stays from then on.
	staysWhen = 7 * 24 * time.Hour
	stays     = 14 * 24 * time.Hour
)

// Reached is how far it has come.
func (a *Archiver) Reached() Progress { return a.progress }

// Pass takes all final windows that aren't in the archive, by their ends, and has those stay in
// Redis that would expire before. A window that can't be taken leaves the others to be taken; the
// error says what came of it. Where another leads the error is store.ErrFenced, and the pass ends.
func (a *Archiver) Pass(ctx context.Context, f store.Fence) error {
	closed, err := a.Boards.Closed(ctx, a.Lateness, listPause)
	if err != nil {
		return fmt.Errorf("look which windows are final: %w", err)
	}
	a.forget(closed)
	if err := a.wentBack(ctx, f); err != nil {
		return err
	}
	var final, left []boards.Closed
	a.progress.NotFinal = 0
	for _, c := range closed {
		switch {
		case c.Revision == 0:
			left = append(left, c)
			a.progress.NotFinal++
		case a.kept[c.Listing()] != c.Revision:
			final = append(final, c)
		}
	}
	final = a.lacks(ctx, final)
	var failed []error
	if err := Stay(ctx, a.Boards, append(left, final...), "the archive", a.Log); err != nil {
		failed = append(failed, err)
	}
	for i := range final {
		a.progress.Waiting, a.progress.Oldest = len(final)-i, final[i].SealedAt
		err := a.archive(ctx, f, &final[i])
		switch {
		case ctx.Err() != nil || errors.Is(err, store.ErrFenced):
			return err
		case errors.Is(err, errChanged):
			a.Log.Info("a window changed while it was archived: it is taken anew", zap.String("window", final[i].Listing()), zap.Error(err))
		case err != nil:
			failed = append(failed, err)
		}
		if len(failed) == mostFailed {
			break // it isn't about single windows
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

// lacks are those that the archive doesn't have of the very seal, as far as it says so: a leader that is new
// knows nothing yet, and has none stay that are in. What it can't be asked for is as if it lacked it.
func (a *Archiver) lacks(ctx context.Context, final []boards.Closed) (lacks []boards.Closed) {
	for i := range final {
		c := &final[i]
		there, err := a.Store.Revision(ctx, c.Board, c.Period, c.Name, c.Revision)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return append(lacks, final[i:]...)
		}
		if err == nil && there.SealedAt.UnixMilli() == c.SealedAt.UnixMilli() {
			a.kept[c.Listing()] = c.Revision
			continue
		}
		lacks = append(lacks, *c)
	}
	return lacks
}

// mostFailed is how many windows a pass fails at before it ends.
const mostFailed = 3

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

// forget lets go of what is known of windows that aren't listed any more.
func (a *Archiver) forget(closed []boards.Closed) {
	listed := map[string]bool{}
	for i := range closed {
		listed[closed[i].Listing()] = true
	}
	for name := range a.kept {
		if !listed[name] {
			delete(a.kept, name)
		}
	}
}

// wentBack finds an archive that was restored from before this leader wrote to it: what is known to be
// in it may not be. One that was restored from a backup of this leader's time isn't told from others, and is
// looked at anew by the next leader. What can't be read is left to whatever writes.
func (a *Archiver) wentBack(ctx context.Context, f store.Fence) error {
	token, err := a.Store.LargestToken(ctx)
	if err != nil || token >= f.Token || len(a.kept) == 0 {
		return nil //nolint:nilerr // see above
	}
	a.Log.Warn("the archive has gone back to before this leader: what is final is looked for anew", zap.Int64("token", token), zap.Int64("own", f.Token))
	clear(a.kept)
	return a.Store.Take(ctx, f)
}
