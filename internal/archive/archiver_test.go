package archive

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/archive/finaltest"
	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/test/testenv"
)

func TestAFinalWindowIsArchivedWithTheRanksThatRedisShows(t *testing.T) {
	for _, of := range []ledger.Shards{1, 3} {
		for _, rule := range []string{"", finaltest.ByRule} {
			t.Run(fmt.Sprint(of, rule), func(t *testing.T) {
				f := newFixture(t, of, rule)
				f.Fill(125)
				for _, place := range []int{0, 60, 61, 124} {
					f.Hide(f.Rows()[place].Member)
				}
				var last Progress
				a := f.archiver(func(p Progress) { last = p })
				require.NoError(t, a.Pass(t.Context(), fence(1)))
				w, _ := f.archived(1)
				require.Zero(t, w.ID, "it isn't final yet")
				require.Equal(t, Progress{NotFinal: 1}, last)

				f.MakeFinal()
				require.NoError(t, a.Pass(t.Context(), fence(1)))
				w, rows := f.archived(1)
				require.Equal(t, f.Rows(), rows)
				require.EqualValues(t, 121, w.Members)
				require.EqualValues(t, 4, w.Hidden)
				require.Equal(t, Progress{Final: Copied{Windows: 1, Rows: 125}}, last)
				require.Equal(t, f.Window.Start, w.Start.UnixMilli())
				require.Equal(t, f.Window.End, w.End.UnixMilli())
				require.Equal(t, map[string]string{"points/0": "10"}, w.Ledger)
				require.WithinDuration(t, time.Now(), w.SealedAt, time.Minute)
				require.Equal(t, "Europe/Berlin", w.Zone)
				require.Equal(t, time.Duration(f.Layout.Tick)*time.Millisecond, w.Tick)
				require.Equal(t, rule != "", len(w.Fields) == 2)

				// Neither this process nor another writes anything again.
				require.NoError(t, a.Pass(t.Context(), fence(1)))
				require.NoError(t, f.archiver(func(p Progress) { last = p }).Pass(t.Context(), fence(2)))
				require.Equal(t, Progress{}, last)
				again, _ := f.archived(1)
				require.Equal(t, w, again)
			})
		}
	}
}

func TestAWindowIsArchivedThoughShardsHaveNobodyOfIt(t *testing.T) {
	f := newFixture(t, 3, "")
	f.Fill(1)
	f.MakeFinal()
	require.NoError(t, f.archiver(nil).Pass(t.Context(), fence(1)))
	_, rows := f.archived(1)
	require.Equal(t, f.Rows(), rows)
	require.Len(t, rows, 1)
}

// Wherever a leader stops, the next one continues after the rows already written.
func TestAnotherLeaderGoesOnWhereOneStopped(t *testing.T) {
	f := newFixture(t, 3, "")
	f.Fill(125)
	for place := 20; place < 95; place++ { // some leaders stop among these
		f.Hide(f.Rows()[place].Member)
	}
	f.MakeFinal()
	for n := range 5 {
		ctx, stop := context.WithCancel(t.Context())
		var written int64
		err := f.archiver(func(p Progress) {
			written = p.Final.Rows
			stop()
		}).Pass(ctx, fence(int64(n+1)))
		if n < 4 {
			require.Error(t, err)
			require.Positive(t, written, "the leader %d", n)
			require.LessOrEqual(t, written, int64(30))
		}
		stop()
	}
	require.NoError(t, f.archiver(nil).Pass(t.Context(), fence(9)))
	_, rows := f.archived(1)
	require.Equal(t, f.Rows(), rows)
}

func TestALeaderThatIsOneNoMoreWritesNothing(t *testing.T) {
	f := newFixture(t, 1, "")
	f.Fill(125)
	f.MakeFinal()
	other := f.archiver(nil)
	other.Store = f.open()
	took := false
	err := f.archiver(func(p Progress) {
		if !took {
			took = true
			require.NoError(t, other.Pass(t.Context(), fence(2)))
		}
	}).Pass(t.Context(), fence(1))
	require.ErrorIs(t, err, store.ErrFenced)
	_, rows := f.archived(1)
	require.Equal(t, f.Rows(), rows)
}

func TestAWindowThatChangesMeanwhileIsTakenAnew(t *testing.T) {
	testenv.SlowEmbedded(t)
	for name, change := range map[string]func(*fixture, string){
		"a member below is hidden": func(f *fixture, _ string) { f.Hide(f.Rows()[100].Member) },
		"a member above is hidden": func(f *fixture, _ string) { f.Hide(f.Rows()[3].Member) },
		"a member above is erased": func(f *fixture, _ string) { f.Erase(f.Rows()[3].Member) },
		"one is hidden, one shown": func(f *fixture, _ string) {
			f.Hide(f.Rows()[100].Member)
			f.Unhide(f.Rows()[120].Member)
		},
		"the window is reopened":    func(f *fixture, _ string) { f.Reopen() },
		"a shard has lost it":       func(f *fixture, _ string) { f.lose() },
		"and the leader is another": func(f *fixture, _ string) { f.Hide(f.Rows()[3].Member) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, 3, "")
			f.Fill(125)
			f.Hide(f.Rows()[120].Member)
			f.MakeFinal()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			done := false
			a := f.archiver(func(p Progress) {
				if done || p.Rows == 0 {
					return
				}
				done = true
				change(f, name)
				if name == "and the leader is another" {
					stop()
				}
			})
			err := a.Pass(ctx, fence(1))
			require.Equal(t, name == "and the leader is another", err != nil, "%v", err)
			w, _ := f.archived(1)
			switch name {
			case "the window is reopened":
				require.Zero(t, w.ID)
				f.MakeFinal()
			case "a shard has lost it":
				require.Zero(t, w.ID)
				return // nothing is archived until it is rebuilt
			case "and the leader is another":
				a = f.archiver(nil)
			}
			require.Zero(t, w.ID)
			for range 2 { // the first pass may find that the unfinished copy no longer fits and drop it; the second starts again
				require.NoError(t, a.Pass(t.Context(), fence(2)))
			}
			revision := int64(1)
			if name == "the window is reopened" {
				revision = 2
			}
			_, rows := f.archived(revision)
			require.Equal(t, f.Rows(), rows)
		})
	}
}

func TestRevisionsStayBesideEachOther(t *testing.T) {
	f := newFixture(t, 3, "")
	f.Fill(50)
	f.MakeFinal()
	a := f.archiver(nil)
	require.NoError(t, a.Pass(t.Context(), fence(1)))
	before := f.Rows()
	f.Reopen()
	f.Hide(before[0].Member)
	f.MakeFinal()
	require.NoError(t, a.Pass(t.Context(), fence(1)))
	_, first := f.archived(1)
	_, second := f.archived(2)
	require.Equal(t, before, first)
	require.Equal(t, f.Rows(), second)
}

// Redis went back to before the seal, and the window was sealed again.
func TestTheArchiveKeepsWhatWasShownOnceRedisHasGoneBack(t *testing.T) {
	for _, of := range []ledger.Shards{1, 3} {
		for _, same := range []bool{true, false} {
			t.Run(fmt.Sprint(of, same), func(t *testing.T) {
				f := newFixture(t, of, "")
				f.Fill(50)
				f.MakeFinal()
				a := f.archiver(nil)
				require.NoError(t, a.Pass(t.Context(), fence(1)))
				before := f.Rows()
				f.GoBack()
				f.Hide(before[7].Member) // this is not a difference
				if !same {
					f.add(before[9].Member, 1)
				}
				f.MakeFinal()
				a = f.archiver(nil) // after a restart: a running archiver already knows the revision
				require.NoError(t, a.Pass(t.Context(), fence(2)))
				_, rows := f.archived(1)
				require.Equal(t, before, rows)
				due, err := f.Due(t.Context(), time.Now(), time.Now(), finaltest.Always, 0)
				require.NoError(t, err)
				if same {
					require.Empty(t, due)
					return
				}
				require.Len(t, due, 1)
				f.MakeFinal()
				require.NoError(t, a.Pass(t.Context(), fence(2)))
				_, rows = f.archived(1)
				require.Equal(t, before, rows)
				_, rows = f.archived(2)
				require.Equal(t, f.Rows(), rows)
			})
		}
	}
}

func TestAWindowThatIsNotInTheArchiveStaysInRedis(t *testing.T) {
	for _, final := range []bool{true, false} {
		t.Run(fmt.Sprint(final), func(t *testing.T) {
			f := newFixture(t, 3, "")
			f.Fill(50)
			if final {
				f.MakeFinal()
			}
			was := f.Expires()
			a := f.archiver(nil)
			away := f.open()
			require.NoError(t, away.Close())
			a.Store = away
			require.Error(t, a.Pass(t.Context(), fence(1)))
			require.Equal(t, was, f.Expires(), "there is time")
			soon := time.Now().Add(2 * time.Hour)
			f.Expire(soon)
			require.Error(t, a.Pass(t.Context(), fence(1)))
			require.WithinDuration(t, time.Now().Add(stays), f.Expires(), time.Minute)
			require.Error(t, a.Pass(t.Context(), fence(1)))
			require.WithinDuration(t, time.Now().Add(stays), f.Expires(), time.Minute, "it isn't in yet")

			if final { // once archived, it expires at its original time, also under the next leader
				a.Store = f.archive
				require.NoError(t, a.Pass(t.Context(), fence(1)))
				require.NoError(t, f.archiver(nil).Pass(t.Context(), fence(2)))
				require.WithinDuration(t, soon, f.Expires(), time.Second)
				stays, err := f.Shards()[0].Stays(t.Context())
				require.NoError(t, err)
				require.Empty(t, stays)

				require.NoError(t, f.archiver(nil).Pass(t.Context(), fence(2)), "the next leader, which has taken none")
				require.WithinDuration(t, soon, f.Expires(), time.Second)
			}
		})
	}
}

// The window has more than half of its time left.
func TestAWindowOfAShortRetentionThatIsArchivedInTimeIsNotProlonged(t *testing.T) {
	f := newFixture(t, 3, "")
	f.Fill(50)
	f.MakeFinal()
	expires := time.Now().Add(50 * time.Minute)
	f.Expire(expires)
	a := f.archiver(nil)
	a.Lateness = func(w ledger.Window) (time.Duration, bool) { // it was closed ten minutes ago
		return time.Since(time.UnixMilli(w.End)) - 10*time.Minute, true
	}
	require.NoError(t, a.Pass(t.Context(), fence(1)))
	require.WithinDuration(t, expires, f.Expires(), time.Second)
	stays, err := f.Shards()[0].Stays(t.Context())
	require.NoError(t, err)
	require.Empty(t, stays)
}

func TestAnArchiveThatIsAwayEndsThePass(t *testing.T) {
	f := newFixture(t, 1, "")
	f.Fill(5)
	f.MakeFinal()
	var last Progress
	a := f.archiver(func(p Progress) { last = p })
	a.Store = f.open()
	require.NoError(t, a.Store.Close())
	require.Error(t, a.Pass(t.Context(), fence(1)))
	require.Equal(t, 1, last.Waiting)
	require.WithinDuration(t, time.Now(), last.Oldest, time.Minute)
}

func TestAnArchiveThatWasRestoredIsFilledAgain(t *testing.T) {
	f := newFixture(t, 1, "")
	f.Fill(50)
	a := f.archiver(nil)
	require.NoError(t, a.Pass(t.Context(), fence(1)), "a backup is made now")
	backup, err := os.ReadFile(f.path)
	require.NoError(t, err)
	f.MakeFinal()
	require.NoError(t, a.Pass(t.Context(), fence(2)))
	_, rows := f.archived(1)
	require.Len(t, rows, 50)
	restored := f.path + ".restored"
	require.NoError(t, os.WriteFile(restored, backup, 0o600))
	f.path = restored
	f.archive = f.open()
	require.NoError(t, f.archive.Migrate(t.Context()))
	a.Store = f.archive
	require.NoError(t, a.Pass(t.Context(), fence(2)))
	_, rows = f.archived(1)
	require.Equal(t, f.Rows(), rows)
}

func TestAWindowThatIsIncompleteIsSoInTheArchive(t *testing.T) {
	for _, of := range []ledger.Shards{1, 3} {
		f := newFixture(t, of, "")
		f.Fill(50)
		for _, s := range f.Shards() {
			require.NoError(t, f.Redis.HSet(t.Context(), s.Keys().Origin(), finaltest.Points.String(), ledger.Origin{Offset: 5, Time: f.Window.Start + 1}.String()).Err())
		}
		f.MakeFinal()
		require.NoError(t, f.archiver(nil).Pass(t.Context(), fence(1)))
		w, rows := f.archived(1)
		require.Len(t, rows, 50)
		require.Equal(t, []string{finaltest.Points.String()}, w.Incomplete)
	}
}

// lose deletes a shard's part of the window, as an operator could by DEL.
func (f *fixture) lose() {
	f.t.Helper()
	require.NoError(f.t, f.Redis.Del(f.t.Context(), f.Shards()[1].Keys().Listed(f.Listed())).Err())
}
