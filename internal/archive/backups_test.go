package archive

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/standings/standings/internal/archive/finaltest"
	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/test/testenv"
)

// backups are some whose pages are small.
func (f *fixture) backups(every time.Duration, reached func(BackupProgress)) *Backups {
	c := f.archiver(nil).Config
	b := NewBackups(BackupConfig{Config: c, Every: every, Reached: reached})
	b.rows = 30
	return b
}

// onArchives runs a test with an archive of each kind.
func onArchives(t *testing.T, test func(t *testing.T, url func(t *testing.T) string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { test(t, func(*testing.T) string { return "" }) })
	t.Run("postgres", func(t *testing.T) { test(t, func(t *testing.T) string { t.Helper(); return testenv.Postgres(t) }) })
}

func newFixtureOn(t *testing.T, url func(t *testing.T) string, of ledger.Shards, rule string) *fixture {
	t.Helper()
	f := newFixture(t, of, rule)
	if url := url(t); url != "" {
		s, err := store.Open(t.Context(), url)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		require.NoError(t, s.Migrate(t.Context()))
		f.archive = s
	}
	return f
}

func pass(t *testing.T, b *Backups, f store.Fence) {
	t.Helper()
	more, err := b.Pass(t.Context(), f)
	require.NoError(t, err)
	require.False(t, more)
}

func TestABackupHasEverybodyWithTheRanksThatRedisShows(t *testing.T) {
	onArchives(t, func(t *testing.T, url func(t *testing.T) string) {
		for _, of := range []ledger.Shards{1, 3} {
			for _, rule := range []string{"", finaltest.ByRule} {
				t.Run(fmt.Sprint(of, rule), func(t *testing.T) {
					f := newFixtureOn(t, url, of, rule)
					f.Fill(1250)
					hidden := f.Shown()[4].Member
					f.Hide(hidden)
					before := time.Now()
					b := f.backups(time.Hour, nil)
					pass(t, b, fence(1))
					w, rows := f.archived(0)
					require.Equal(t, f.Shown(), rows)
					require.WithinRange(t, w.AsOf, before.Add(-time.Second), time.Now().Add(time.Second))
					require.WithinRange(t, w.Until, w.AsOf, time.Now().Add(time.Second))
					require.Equal(t, map[string]string{"points/0": "10"}, w.Ledger)
					require.Equal(t, "Europe/Berlin", w.Zone)
					require.Equal(t, rule != "", len(w.Fields) == 2)
					require.Equal(t, rule == "", w.MaxPoints == 1_000_000)
					p := b.Progress()
					require.EqualValues(t, 1, p.Taken)
					require.EqualValues(t, 1249, p.Written)
					require.Zero(t, p.Due)
					require.WithinDuration(t, time.Now(), p.Succeeded, time.Minute)
				})
			}
		}
	})
}

func TestABackupIsTakenEveryIntervalAndReplacesTheOneBefore(t *testing.T) {
	f := newFixture(t, 3, "")
	f.Fill(50)
	b := f.backups(time.Hour, nil)
	pass(t, b, fence(1))
	first, _ := f.archived(0)
	require.NotZero(t, first.ID)
	f.add("m7", 1000)
	b.next = time.Time{}
	pass(t, b, fence(1))
	again, _ := f.archived(0)
	require.Equal(t, first, again, "it isn't due")
	require.InDelta(t, time.Hour.Seconds(), time.Until(b.next).Seconds(), 60)

	// Whoever leads next knows from the archive when the next is due.
	f.age(first, 2*time.Hour)
	b = f.backups(time.Hour, nil)
	pass(t, b, fence(2))
	second, rows := f.archived(0)
	require.NotEqual(t, first.ID, second.ID)
	require.Equal(t, f.Shown(), rows)
	require.Equal(t, "m7", rows[0].Member)
	_, err := f.archive.ByID(t.Context(), first.ID)
	require.ErrorIs(t, err, store.ErrNotFound, "its rows are removed")

	// A backup of a time to come is one of a clock that was wrong.
	f.age(second, -time.Hour)
	pass(t, f.backups(time.Hour, nil), fence(2))
	third, _ := f.archived(0)
	require.WithinDuration(t, time.Now(), third.AsOf, time.Minute)
}

func TestAFinalWindowReplacesItsBackupAndHasNone(t *testing.T) {
	f := newFixture(t, 3, "")
	f.Fill(50)
	b := f.backups(0, nil)
	pass(t, b, fence(1))
	a := f.archiver(nil)
	f.MakeFinal()
	require.NoError(t, a.Pass(t.Context(), fence(1)))
	w, _ := f.archived(0)
	require.Zero(t, w.ID)
	pass(t, f.backups(0, nil), fence(1))
	w, _ = f.archived(0)
	require.Zero(t, w.ID)

	// Reopened, it has what was final until it is so again.
	f.Reopen()
	pass(t, f.backups(0, nil), fence(1))
	w, _ = f.archived(0)
	require.Zero(t, w.ID)
	_, rows := f.archived(1)
	require.Len(t, rows, 50)
}

func TestAWindowThatHasntChangedIsNotWrittenAgain(t *testing.T) {
	onArchives(t, func(t *testing.T, url func(t *testing.T) string) {
		f := newFixtureOn(t, url, 3, "")
		f.Fill(50)
		b := f.backups(0, nil)
		pass(t, b, fence(1))
		first, _ := f.archived(0)
		read := b.Progress().Read

		// Nothing was counted: it isn't read.
		b.next = time.Time{}
		calls := 0
		b.Reached = func(p BackupProgress) { calls += int(p.Read) }
		pass(t, b, fence(1))
		require.Zero(t, calls)
		require.Zero(t, read-b.Progress().Read-read)
		again, rows := f.archived(0)
		require.Equal(t, first.ID, again.ID)
		require.True(t, again.AsOf.After(first.AsOf))
		require.Equal(t, f.Shown(), rows)

		// Something was, elsewhere: it is read, and found to be the same.
		f.count(11)
		b.next = time.Time{}
		pass(t, b, fence(1))
		require.Positive(t, calls)
		third, _ := f.archived(0)
		require.Equal(t, first.ID, third.ID)
		require.Equal(t, map[string]string{"points/0": "11"}, third.Ledger)
		require.EqualValues(t, 2, b.Progress().Unchanged)

		// A ban is a change that no position shows.
		f.Hide(rows[3].Member)
		b.next = time.Time{}
		pass(t, b, fence(1))
		_, rows = f.archived(0)
		require.Equal(t, f.Shown(), rows)
		require.Len(t, rows, 49)
		require.EqualValues(t, 2, b.Progress().Taken)
	})
}

// While it is read members overtake one another, and others come. Whoever was in it is in the backup, once,
// with at least the points that counted as of the backup, and no more than those that counted at its end.
func TestEverybodyIsInABackupOnceHoweverTheyMoveMeanwhile(t *testing.T) {
	for _, of := range []ledger.Shards{1, 3} {
		t.Run(fmt.Sprint(of), func(t *testing.T) {
			f := newFixture(t, of, "")
			f.Fill(3000)
			before := map[string]float64{}
			for _, r := range f.Shown() {
				before[r.Member] = r.Score
			}
			b := f.backups(0, nil)
			b.rows = 100
			moved := 0
			b.Reached = func(p BackupProgress) {
				if p.Rows > 0 { // it is being written
					return
				}
				for range 200 { // from the bottom to the top, and many newcomers, so that Redis's tables grow
					f.add(fmt.Sprint("m", rand.Int64N(3000)), 100)
					f.add(fmt.Sprint("new", moved), 1)
					moved++
				}
			}
			pass(t, b, fence(1))
			require.Greater(t, moved, 1000)
			after := map[string]float64{}
			for _, r := range f.Shown() {
				after[r.Member] = r.Score
			}
			_, rows := f.archived(0)
			got := map[string]bool{}
			for i, r := range rows {
				require.False(t, got[r.Member], "%s is in it twice", r.Member)
				got[r.Member] = true
				require.GreaterOrEqual(t, r.Score, before[r.Member])
				require.LessOrEqual(t, r.Score, after[r.Member])
				require.True(t, i == 0 || rows[i-1].Score > r.Score || rows[i-1].Score == r.Score && rows[i-1].Member > r.Member)
			}
			for member := range before {
				require.True(t, got[member], "%s isn't in it", member)
			}
		})
	}
}

// Redis goes back to before the backup was begun, while it is read: what was read is of no use.
func TestABackupIsReadAnewWhereRedisWentBackMeanwhile(t *testing.T) {
	f := newFixture(t, 3, "")
	f.Fill(500)
	b := f.backups(0, nil)
	back := false
	b.Reached = func(p BackupProgress) {
		if p.Read > 0 && !back {
			back = true
			for _, s := range f.Shards() { // the token came later than what it went back to
				require.NoError(t, f.Redis.Del(t.Context(), s.Keys().Snapshot()).Err())
			}
		}
	}
	pass(t, b, fence(1))
	require.True(t, back)
	w, _ := f.archived(0)
	require.Zero(t, w.ID)
	require.Equal(t, 1, b.Progress().Due)
	clear(b.later)
	b.next = time.Time{}
	pass(t, b, fence(1))
	_, rows := f.archived(0)
	require.Equal(t, f.Shown(), rows)
}

// Redis went back between two backups: the one before has more, until Redis has caught up.
func TestABackupIsNotReplacedByOneThatCountsLess(t *testing.T) {
	for _, of := range []ledger.Shards{1, 3} {
		f := newFixture(t, of, "")
		f.Fill(50)
		f.count(20)
		b := f.backups(0, nil)
		logs := f.logs(b)
		pass(t, b, fence(1))
		first, rows := f.archived(0)
		f.count(15)
		f.remove(rows[0].Member)
		again := func() {
			t.Helper()
			clear(b.later)
			b.next = time.Time{}
			pass(t, b, fence(1))
		}
		again()
		again()
		w, _ := f.archived(0)
		require.Equal(t, first, w)
		require.Len(t, logs.FilterMessageSnippet("counted less than the backup").All(), 1)
		require.Equal(t, 1, b.Progress().Due)
		f.count(21)
		again()
		require.Zero(t, b.Progress().Due)
		_, rows = f.archived(0)
		require.Equal(t, f.Shown(), rows)
		f.count(15)
		f.remove(rows[1].Member)
		b.Replace = true
		again()
		_, rows = f.archived(0)
		require.Equal(t, f.Shown(), rows)
	}
}

// Redis was lost, and is made from a log whose beginning is gone.
func TestABackupIsNotReplacedByOneThatLacksWhatItHas(t *testing.T) {
	f := newFixture(t, 1, "")
	f.Fill(50)
	b := f.backups(0, nil)
	logs := f.logs(b)
	pass(t, b, fence(1))
	first, rows := f.archived(0)
	f.count(30)
	f.remove(rows[0].Member)
	for _, s := range f.Shards() {
		require.NoError(t, f.Redis.HSet(t.Context(), s.Keys().Origin(), finaltest.Points.String(), ledger.Origin{Offset: 20, Time: f.Window.Start + 1}.String()).Err())
	}
	again := func() {
		t.Helper()
		clear(b.later)
		b.next = time.Time{}
		pass(t, b, fence(1))
	}
	again()
	w, _ := f.archived(0)
	require.Equal(t, first, w)
	require.EqualValues(t, 1, b.Progress().Kept)
	require.Len(t, logs.FilterMessageSnippet("has lost events").All(), 1)

	// Of a gap that came after the backup it lacks nothing that the backup has.
	f.add(rows[0].Member, 3)
	again()
	w, _ = f.archived(0)
	require.NotEqual(t, first.ID, w.ID)
	require.Equal(t, []string{"points/0"}, w.Incomplete)
}

// Wherever a leader stops, the one before is shown until the next is whole, and the next leader takes it.
func TestALeaderThatStopsInABackupLeavesTheOneBefore(t *testing.T) {
	onArchives(t, func(t *testing.T, url func(t *testing.T) string) {
		f := newFixtureOn(t, url, 3, "")
		f.Fill(125)
		pass(t, f.backups(0, nil), fence(1))
		first, before := f.archived(0)
		f.add("m3", 1000)
		f.count(11)
		for n := range 12 {
			ctx, stop := context.WithCancel(t.Context())
			calls := 0
			_, err := f.backups(0, func(BackupProgress) {
				if calls++; calls > n {
					stop()
				}
			}).Pass(ctx, fence(int64(n+2)))
			stop()
			if err == nil {
				break
			}
			w, rows := f.archived(0)
			require.Equal(t, first.ID, w.ID, "stopped after %d", n)
			require.Equal(t, before, rows)
		}
		f.release()
		pass(t, f.backups(0, nil), fence(100))
		_, rows := f.archived(0)
		require.Equal(t, f.Shown(), rows)
		copies, err := f.archive.Windows(t.Context(), store.Filter{All: true}, store.Place{}, 10)
		require.NoError(t, err)
		require.Len(t, copies, 1, "what was begun is removed")
	})
}

func TestALeaderThatWasPausedInABackupIsFenced(t *testing.T) {
	onArchives(t, func(t *testing.T, url func(t *testing.T) string) {
		f := newFixtureOn(t, url, 1, "")
		f.Fill(125)
		other := f.backups(0, nil)
		took := false
		_, err := f.backups(0, func(p BackupProgress) {
			if p.Rows == 60 && !took { // in the middle of its writing
				took = true
				f.add("m3", 1000)
				pass(t, other, fence(2))
			}
		}).Pass(t.Context(), fence(1))
		require.True(t, took)
		require.ErrorIs(t, err, store.ErrFenced)
		_, rows := f.archived(0)
		require.Equal(t, f.Shown(), rows)
	})
}

func TestAnArchiveThatIsAwayEndsABackupAndTheNextIsWhole(t *testing.T) {
	f := newFixture(t, 1, "")
	f.Fill(125)
	b := f.backups(0, nil)
	closed := f.open()
	b.Store = closed
	b.Reached = func(p BackupProgress) {
		if p.Rows == 60 {
			require.NoError(t, closed.Close())
		}
	}
	_, err := b.Pass(t.Context(), fence(1))
	require.Error(t, err)
	require.Equal(t, 1, b.Progress().Due)
	b.Store, b.Reached, b.next = f.archive, func(BackupProgress) {}, time.Time{}
	pass(t, b, fence(1))
	_, rows := f.archived(0)
	require.Equal(t, f.Shown(), rows)
}

func TestABackupThatAnotherReaderOfPagesKeepsWaitingIsTakenLater(t *testing.T) {
	f := newFixture(t, 1, "")
	f.Fill(5)
	sn, err := f.Shards()[0].BeginSnapshot(t.Context(), time.Minute)
	require.NoError(t, err)
	b := f.backups(0, nil)
	pass(t, b, fence(1))
	w, _ := f.archived(0)
	require.Zero(t, w.ID)
	sn.Close(t.Context())
	clear(b.later)
	b.next = time.Time{}
	pass(t, b, fence(1))
	_, rows := f.archived(0)
	require.Len(t, rows, 5)
}

func TestAWindowThatIsSealedOrDroppedWhileItIsReadHasNoBackup(t *testing.T) {
	for name, change := range map[string]func(*fixture){
		"sealed":  func(f *fixture) { f.MakeFinal() },
		"dropped": func(f *fixture) { f.drop() },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 3, "")
			f.Fill(125)
			b := f.backups(0, nil)
			done := false
			b.Reached = func(p BackupProgress) {
				if p.Read > 0 && !done {
					done = true
					change(f)
				}
			}
			pass(t, b, fence(1))
			require.True(t, done)
			w, _ := f.archived(0)
			require.Zero(t, w.ID)
		})
	}
}

func TestATurnEndsBetweenTwoWindows(t *testing.T) {
	f := newFixture(t, 1, "")
	f.Fill(50)
	f.Board = "eu"
	f.Fill(50)
	b := f.backups(time.Hour, nil)
	b.Turn = time.Nanosecond
	for n := range 3 {
		more, err := b.Pass(t.Context(), fence(1))
		require.NoError(t, err)
		require.Equal(t, n == 0, more)
		if !more {
			break
		}
	}
	for _, board := range []string{"global", "eu"} {
		f.Board = board
		_, rows := f.archived(0)
		require.Equal(t, f.Shown(), rows)
	}
}

// logs are what backups log.
func (f *fixture) logs(b *Backups) *observer.ObservedLogs {
	core, logs := observer.New(zap.WarnLevel)
	b.Log = zap.New(core)
	return logs
}

// add has a member have so many points more, by the default rule.
func (f *fixture) add(member string, points int64) {
	f.t.Helper()
	key := f.Shard(member).Keys().Listed(f.Listed())
	require.NoError(f.t, f.Redis.ZIncrBy(f.t.Context(), key, float64(points), member).Err())
}

func (f *fixture) remove(member string) {
	f.t.Helper()
	require.NoError(f.t, f.Redis.ZRem(f.t.Context(), f.Shard(member).Keys().Listed(f.Listed()), member).Err())
}

// count has every shard count up to an offset.
func (f *fixture) count(to int64) {
	f.t.Helper()
	for _, s := range f.Shards() {
		require.NoError(f.t, f.Redis.HSet(f.t.Context(), s.Keys().Ledger(), finaltest.Points.String(), ledger.At(to).String()).Err())
	}
}

// age has a backup be older.
func (f *fixture) age(w store.Window, by time.Duration) {
	f.t.Helper()
	w.AsOf, w.Until = w.AsOf.Add(-by), w.Until.Add(-by)
	require.NoError(f.t, f.archive.Touch(f.t.Context(), fence(w.TakenBy), w.ID, &w))
}

// release takes away what a leader that died has left in Redis; otherwise it goes after a minute.
func (f *fixture) release() {
	f.t.Helper()
	for _, s := range f.Shards() {
		require.NoError(f.t, f.Redis.Del(f.t.Context(), s.Keys().Snapshot()).Err())
	}
}

func (f *fixture) drop() {
	f.t.Helper()
	for _, s := range f.Shards() {
		require.NoError(f.t, f.Redis.Del(f.t.Context(), s.Keys().Listed(f.Listed())).Err())
		require.NoError(f.t, f.Redis.HDel(f.t.Context(), s.Keys().Windows(), f.Listed()).Err())
	}
}
