package archive

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/archive/finaltest"
	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/testenv"
)

// backups returns an archiver for which every backup is due.
func (f *fixture) backups(progress func(Progress)) *Archiver {
	a := f.archiver(progress)
	a.Interval = time.Nanosecond
	return a
}

func TestABackupHasEverybodyWithTheRanksThatRedisShows(t *testing.T) {
	for _, url := range []func() string{func() string { return "" }, func() string { return testenv.Postgres(t) }} {
		for _, of := range []ledger.Shards{1, 3} {
			for _, rule := range []string{"", finaltest.ByRule} {
				f := newFixture(t, of, rule)
				if url := url(); url != "" {
					s, err := store.Open(t.Context(), url)
					require.NoError(t, err)
					t.Cleanup(func() { require.NoError(t, s.Close()) })
					require.NoError(t, s.Migrate(t.Context()))
					f.archive = s
				}
				f.Fill(1250)
				f.Hide(f.Rows()[4].Member)
				before := time.Now()
				a := f.backups(nil)
				require.NoError(t, a.Pass(t.Context(), fence(1)))
				w, rows := f.archived(0)
				require.Equal(t, f.Rows(), rows)
				require.WithinRange(t, w.AsOf, before.Add(-time.Second), time.Now().Add(time.Second))
				require.Equal(t, map[string]string{"points/0": "10"}, w.Ledger)
				require.Equal(t, "Europe/Berlin", w.Zone)
				require.Equal(t, rule != "", len(w.Fields) == 2)
				require.Equal(t, rule == "", w.MaxPoints == 1_000_000)
				p := a.Reached()
				require.EqualValues(t, 1, p.Backups.Windows)
				require.GreaterOrEqual(t, p.Backups.Rows, int64(1249))
				require.Zero(t, p.Due)
			}
		}
	}
}

func TestABackupIsTakenEveryIntervalAndReplacesTheOneBefore(t *testing.T) {
	f := newFixture(t, 3, "")
	f.Fill(50)
	a := f.archiver(nil)
	a.Interval = time.Hour
	require.NoError(t, a.Pass(t.Context(), fence(1)))
	first, _ := f.archived(0)
	require.NotZero(t, first.ID)
	f.add("m7", 1000)
	require.NoError(t, a.Pass(t.Context(), fence(1)))
	again, _ := f.archived(0)
	require.Equal(t, first, again, "it isn't due")

	// The next leader reads from the archive when the next backup is due.
	a = f.archiver(nil)
	a.Interval = time.Hour
	require.NoError(t, a.Pass(t.Context(), fence(2)))
	again, _ = f.archived(0)
	require.Equal(t, first, again)
	a.backups[f.Listed()] = time.Now().Add(-2 * time.Hour)
	require.NoError(t, a.Pass(t.Context(), fence(2)))
	second, rows := f.archived(0)
	require.NotEqual(t, first.ID, second.ID)
	require.Equal(t, f.Rows(), rows)
	require.Equal(t, "m7", rows[0].Member)
	_, err := f.archive.ByID(t.Context(), first.ID)
	require.ErrorIs(t, err, store.ErrNotFound, "its rows are removed")

	// A backup from the future was taken when the clock was wrong.
	a.backups[f.Listed()] = time.Now().Add(2 * time.Hour)
	require.NoError(t, a.Pass(t.Context(), fence(2)))
	third, _ := f.archived(0)
	require.NotEqual(t, second.ID, third.ID)
}

func TestAFinalWindowReplacesItsBackupAndHasNone(t *testing.T) {
	f := newFixture(t, 3, "")
	f.Fill(50)
	a := f.backups(nil)
	require.NoError(t, a.Pass(t.Context(), fence(1)))
	w, _ := f.archived(0)
	require.NotZero(t, w.ID)
	f.MakeFinal()
	for range 2 {
		require.NoError(t, a.Pass(t.Context(), fence(1)))
		w, _ = f.archived(0)
		require.Zero(t, w.ID)
	}
	// After it is reopened, the archive shows the final revision until the window is final again.
	f.Reopen()
	require.NoError(t, a.Pass(t.Context(), fence(1)))
	w, _ = f.archived(0)
	require.Zero(t, w.ID)
	require.Zero(t, a.Reached().Due)
	_, rows := f.archived(1)
	require.Len(t, rows, 50)
}

// Redis was lost, and is refilled from a log whose beginning is gone.
func TestABackupStaysWhileItsWindowIsNotComplete(t *testing.T) {
	for name, lose := range map[string]func(*fixture, bool){
		"records are missing": func(f *fixture, lost bool) {
			o := ledger.Origin{}
			if lost {
				o = ledger.Origin{Offset: 5, Time: f.Window.Start + 1}
			}
			f.set(ranking.Keys.Origin, finaltest.Points.String(), o.String())
		},
		"it is refilled": func(f *fixture, lost bool) {
			at := ledger.At(10)
			if lost {
				at = ledger.At(5)
			}
			f.set(ranking.Keys.Ledger, finaltest.Points.String(), at.String())
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 3, "")
			f.Fill(50)
			if name == "it is refilled" { // after an earlier loss
				f.set(ranking.Keys.Workers, "refill:"+finaltest.Points.String(), "10")
			}
			a := f.backups(nil)
			require.NoError(t, a.Pass(t.Context(), fence(1)))
			first, rows := f.archived(0)
			require.Len(t, rows, 50)
			lose(f, true)
			f.remove(rows[0].Member)
			require.NoError(t, a.Pass(t.Context(), fence(1)))
			w, _ := f.archived(0)
			require.Equal(t, first, w)
			require.Equal(t, 1, a.Reached().Incomplete)
			require.Zero(t, a.Reached().Due, "nobody can do anything about it")
			lose(f, false)
			require.NoError(t, a.Pass(t.Context(), fence(1)))
			_, rows = f.archived(0)
			require.Equal(t, f.Rows(), rows)
			require.Zero(t, a.Reached().Incomplete)
		})
	}
}

// Members overtake one another during the scan, and new members come. The backup has every member that was present
// at its begin exactly once, with at least the points from its begin, and at most those from its end.
func TestEverybodyIsInABackupOnceHoweverTheyMoveMeanwhile(t *testing.T) {
	testenv.SlowEmbedded(t)
	for _, of := range []ledger.Shards{1, 3} {
		t.Run(fmt.Sprint(of), func(t *testing.T) {
			f := newFixture(t, of, "")
			f.Fill(3000)
			before := map[string]float64{}
			for _, r := range f.Rows() {
				before[r.Member] = r.Score
			}
			moved := 0
			a := f.backups(func(p Progress) {
				if p.Rows == 0 || moved > 2000 { // the pass is over, or enough members have moved
					return
				}
				f.Hide(fmt.Sprint("m", moved))
				if moved > 0 {
					f.Unhide(fmt.Sprint("m", moved-200))
				}
				for range 200 { // members move from the bottom to the top, and many new ones make Redis's tables grow
					f.add(fmt.Sprint("m", rand.Int64N(3000)), 100)
					f.add(fmt.Sprint("new", moved), 1)
					moved++
				}
			})
			a.append = 100
			require.NoError(t, a.Pass(t.Context(), fence(1)))
			require.Greater(t, moved, 1000)
			after := map[string]float64{}
			for _, r := range f.Rows() {
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

// Wherever a leader stops, its last backup is shown until the next one is complete. The next leader takes that
// one.
func TestALeaderThatStopsInABackupLeavesTheOneBefore(t *testing.T) {
	f := newFixture(t, 3, "")
	f.Fill(125)
	require.NoError(t, f.backups(nil).Pass(t.Context(), fence(1)))
	first, before := f.archived(0)
	f.add("m3", 1000)
	for n := range 12 {
		ctx, stop := context.WithCancel(t.Context())
		calls := 0
		err := f.backups(func(Progress) {
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
	require.NoError(t, f.backups(nil).Pass(t.Context(), fence(100)))
	_, rows := f.archived(0)
	require.Equal(t, f.Rows(), rows)
	copies, err := f.archive.Windows(t.Context(), store.Filter{All: true}, store.Place{}, 10)
	require.NoError(t, err)
	require.Len(t, copies, 1, "what was begun is removed")
}

func TestAWindowThatIsSealedOrDroppedWhileItIsReadHasNoBackup(t *testing.T) {
	for name, change := range map[string]func(*fixture){
		"sealed":  func(f *fixture) { f.MakeFinal() },
		"dropped": func(f *fixture) { f.drop() },
		"lost":    func(f *fixture) { f.lose() },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 3, "")
			f.Fill(125)
			done := false
			a := f.backups(func(p Progress) {
				if p.Rows > 0 && !done {
					done = true
					change(f)
				}
			})
			require.NoError(t, a.Pass(t.Context(), fence(1)))
			require.True(t, done)
			w, _ := f.archived(0)
			require.Zero(t, w.ID)
			require.Equal(t, 1, a.Reached().Due)
		})
	}
}

func TestATurnEndsBetweenTwoWindows(t *testing.T) {
	f := newFixture(t, 1, "")
	f.Fill(50)
	f.Board = "eu"
	f.Fill(50)
	a := f.archiver(nil)
	a.Interval, a.Turn = time.Hour, time.Nanosecond
	require.NoError(t, a.Pass(t.Context(), fence(1)))
	require.True(t, a.Reached().More)
	require.Equal(t, 1, a.Reached().Due)
	require.Greater(t, a.Reached().Overdue, 24*time.Hour)
	require.NoError(t, a.Pass(t.Context(), fence(1)))
	require.False(t, a.Reached().More)
	require.Zero(t, a.Reached().Overdue)
	for _, board := range []string{"global", "eu"} {
		f.Board = board
		_, rows := f.archived(0)
		require.Equal(t, f.Rows(), rows)
	}
}

// add adds points to a member, by the default rule.
func (f *fixture) add(member string, points int64) {
	f.t.Helper()
	key := f.Shard(member).Keys().Listed(f.Listed())
	if hidden := f.Shard(member).Keys().Hidden(f.Listed()); f.Redis.ZScore(f.t.Context(), hidden, member).Err() == nil {
		key = hidden
	}
	require.NoError(f.t, f.Redis.ZIncrBy(f.t.Context(), key, float64(points), member).Err())
}

func (f *fixture) remove(member string) {
	f.t.Helper()
	require.NoError(f.t, f.Redis.ZRem(f.t.Context(), f.Shard(member).Keys().Listed(f.Listed()), member).Err())
}

// set sets a field of a hash on every shard.
func (f *fixture) set(key func(ranking.Keys) string, field, value string) {
	f.t.Helper()
	for _, s := range f.Shards() {
		require.NoError(f.t, f.Redis.HSet(f.t.Context(), key(s.Keys()), field, value).Err())
	}
}

func (f *fixture) drop() {
	f.t.Helper()
	for _, s := range f.Shards() {
		require.NoError(f.t, f.Redis.Del(f.t.Context(), s.Keys().Listed(f.Listed())).Err())
		require.NoError(f.t, f.Redis.HDel(f.t.Context(), s.Keys().Windows(), f.Listed()).Err())
	}
}
