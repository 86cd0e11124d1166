package reading

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/testenv"
)

// archived returns a reader with a board in Redis, and an archive that open opens.
func archived(t *testing.T, open func(context.Context) (*store.Store, error), timeout time.Duration, reads int) (*Reader, *fixture) {
	t.Helper()
	f := newFixture(t, testenv.Prefix(t), 1, codec.Readable)
	f.config.Archive = &Archive{Open: open, Timeout: timeout, Reads: reads}
	f.put(t, "global", []member{{"a", 1, codec.Tuple{7}}})
	return New(f.config), f
}

func TestWindowsThatRedisHasNeverTouchTheArchive(t *testing.T) {
	r, f := archived(t, func(context.Context) (*store.Store, error) {
		t.Error("the archive was asked")
		return nil, errors.New("away")
	}, time.Minute, 4)
	v, err := r.Rows(t.Context(), f.target("global"), Page{Limit: 10})
	require.NoError(t, err)
	require.Len(t, v.Standings, 1)
}

// live is a target in the current week.
func (f *fixture) live(t *testing.T, board string) Target {
	t.Helper()
	now, err := periods.Calendar{}.At(periods.Weekly, time.Now().UnixMilli())
	require.NoError(t, err)
	target := f.target(board)
	target.Window, target.Named = now, now.Name
	return target
}

// If a board has no events yet, the answer comes from Redis, whatever the archive's state.
func TestAQuietBoardIsReadWithAnArchiveThatIsAwayOrSlow(t *testing.T) {
	for name, open := range map[string]func(context.Context) (*store.Store, error){
		"away": func(context.Context) (*store.Store, error) { return nil, errors.New("connection refused") },
		"slow": func(ctx context.Context) (*store.Store, error) { <-ctx.Done(); return nil, ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			var opened atomic.Int64
			r, f := archived(t, func(ctx context.Context) (*store.Store, error) { opened.Add(1); return open(ctx) }, time.Minute, 4)
			began := time.Now()
			for range 20 {
				v, err := r.Rows(t.Context(), f.live(t, "quiet"), Page{Limit: 10})
				require.NoError(t, err)
				require.False(t, v.Listed)
			}
			require.Less(t, time.Since(began), 3*liveLimit)
			require.EqualValues(t, 1, opened.Load(), "it isn't asked again soon")
		})
	}
}

// Redis was lost, and the rest of the log has no events of a window: the reader uses its backup, and marks it as
// one.
func TestABackupIsReadWhereRedisDoesntListAWindowThatIsntOver(t *testing.T) {
	s := openStore(t, sqliteURL(t))
	results := map[string]int{}
	_, f := archived(t, func(context.Context) (*store.Store, error) { return s, nil }, time.Minute, 4)
	f.config.Archive.Observe = func(result string, _ time.Duration) { results[result]++ }
	r := New(f.config)
	target := f.live(t, "lost")
	f.window = target.Window
	f.put(t, "lost", []member{{"a", 1, codec.Tuple{7}}, {"b", 1, codec.Tuple{5}}})
	v, err := r.Rows(t.Context(), target, Page{Limit: 10})
	require.NoError(t, err)
	require.False(t, v.Archived, "Redis has it")
	w := f.copyTo(t, s, "lost", 0)
	f.remove(t, "lost")
	v, err = r.Rows(t.Context(), target, Page{Limit: 10})
	require.NoError(t, err)
	require.True(t, v.Archived)
	require.Equal(t, StateBackup, v.State())
	require.False(t, v.Complete())
	require.Zero(t, v.Revision)
	require.True(t, v.AsOf.Equal(w.AsOf))
	require.Len(t, v.Standings, 2)
	v, err = r.Around(t.Context(), target, "b", 0, false)
	require.NoError(t, err)
	require.EqualValues(t, 2, v.Standings[0].Rank)

	// Once the first event counts, Redis lists the window again, and the reader uses Redis.
	f.put(t, "lost", []member{{"c", 1, codec.Tuple{1}}})
	v, err = r.Rows(t.Context(), target, Page{Limit: 10})
	require.NoError(t, err)
	require.False(t, v.Archived)
	require.Len(t, v.Standings, 1)
	_, err = r.Rows(t.Context(), f.live(t, "quiet"), Page{Limit: 10})
	require.NoError(t, err)
	require.Equal(t, map[string]int{ReadFound: 2, ReadNotFound: 1}, results)
}

// Until a consumer has read the bans topic, members are hidden as they were when the copy was taken.
func TestBannedMembersStayHiddenWhileRedisHoldsNothing(t *testing.T) {
	s := openStore(t, sqliteURL(t))
	r, f := archived(t, func(context.Context) (*store.Store, error) { return s, nil }, time.Minute, 4)
	f.put(t, "global", []member{{"a", 1, codec.Tuple{7}}, {"b", 1, codec.Tuple{5}}})
	f.each(t, (*ranking.Store).Ban, ranking.Ban{Member: "a"})
	f.copyTo(t, s, "global", 1)
	f.remove(t, "global")
	shown := func() (all []string) {
		v, err := r.Rows(t.Context(), f.target("global"), Page{Limit: 10})
		require.NoError(t, err)
		require.True(t, v.Archived)
		require.EqualValues(t, len(v.Standings), v.Members)
		for i, st := range v.Standings {
			require.EqualValues(t, i+1, st.Rank)
			all = append(all, st.Member)
		}
		return all
	}
	require.Equal(t, []string{"b"}, shown())
	for _, shard := range f.boards.Shards() {
		k := shard.Keys()
		require.NoError(t, f.client.Del(t.Context(), k.Schema(), k.Banned(), k.Ledger(), k.Origin(), k.Windows()).Err())
	}
	require.Equal(t, []string{"b"}, shown())
}

// The possible points in an archived window are those of the window, not today's.
func TestPointsBeyondTodaysLimitAreFoundInAWindowThatHadThem(t *testing.T) {
	for _, most := range []int64{0, 50_000_000} {
		s := openStore(t, sqliteURL(t))
		r, f := archived(t, func(context.Context) (*store.Store, error) { return s, nil }, time.Minute, 4)
		f.put(t, "global", []member{{"a", 1, codec.Tuple{7}}})
		w := f.copyTo(t, s, "global", 1)
		w.Revision, w.MaxPoints, w.Members = 2, most, 2
		writing, err := s.Begin(t.Context(), leader, w)
		require.NoError(t, err)
		require.NoError(t, writing.Append(t.Context(), []store.Row{
			{Place: 1, Rank: 1, Member: "many", Tuple: codec.Tuple{40_000_000}, Score: 4e7, ReachedAt: f.window.Start},
			{Place: 2, Rank: 2, Member: "few", Tuple: codec.Tuple{30_000_000}, Score: 3e7, ReachedAt: f.window.Start},
		}))
		require.NoError(t, writing.Finish(t.Context()))
		f.remove(t, "global")
		v, err := r.Rows(t.Context(), f.target("global"), Page{Limit: 10, Points: &[2]int64{35_000_000, 60_000_000}})
		require.NoError(t, err)
		require.EqualValues(t, 1, v.InRange)
		require.Equal(t, "many", v.Standings[0].Member)
	}
}

func TestAnArchiveThatIsAwayIsAnErrorOfPastWindowsAlone(t *testing.T) {
	away := errors.New("connection refused")
	r, f := archived(t, func(context.Context) (*store.Store, error) { return nil, away }, time.Minute, 4)
	_, err := r.Rows(t.Context(), f.target("past"), Page{Limit: 10})
	var said *ArchiveError
	require.ErrorAs(t, err, &said)
	require.ErrorIs(t, err, away)
	_, err = r.Rows(t.Context(), f.target("global"), Page{Limit: 10})
	require.NoError(t, err)
}

// A slow archive delays its own readers up to their timeout, and then no readers for a moment.
func TestASlowArchiveIsWaitedForByFewAndNotForLong(t *testing.T) {
	var opened atomic.Int64
	inside := make(chan struct{}, 100)
	r, f := archived(t, func(ctx context.Context) (*store.Store, error) {
		opened.Add(1)
		inside <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}, 5*time.Second, 1)
	first, second := make(chan error, 1), make(chan error, 1)
	read := func(to chan error) {
		_, err := r.Rows(t.Context(), f.target("past"), Page{Limit: 10})
		to <- err
	}
	go read(first)
	<-inside
	go read(second) // this one waits
	require.Eventually(t, func() bool { r.archive.mu.Lock(); defer r.archive.mu.Unlock(); return r.archive.inside == 2 }, 5*time.Second, time.Millisecond)
	_, err := r.Rows(t.Context(), f.target("past"), Page{Limit: 10})
	require.ErrorIs(t, err, ErrArchiveBusy, "a third is refused at once")
	_, err = r.Rows(t.Context(), f.target("global"), Page{Limit: 10})
	require.NoError(t, err, "who reads what Redis has isn't held up")
	require.Empty(t, first, "the archive is waited for still")
	require.ErrorIs(t, <-first, errSlow)
	require.Error(t, <-second)
	was := opened.Load()
	_, err = r.Rows(t.Context(), f.target("past"), Page{Limit: 10})
	require.ErrorIs(t, err, errSlow, "it isn't asked for a moment")
	require.Equal(t, was, opened.Load())
}

func TestAWindowThatIsNowhereIsLookedForOnceAMoment(t *testing.T) {
	s := openStore(t, sqliteURL(t))
	var asked atomic.Int64
	r, f := archived(t, func(context.Context) (*store.Store, error) { asked.Add(1); return s, nil }, time.Minute, 4)
	for range 50 {
		v, err := r.Rows(t.Context(), f.target("nowhere"), Page{Limit: 10})
		require.NoError(t, err)
		require.False(t, v.Listed)
	}
	require.LessOrEqual(t, asked.Load(), int64(5))
	// After that moment the reader finds a copy that was made meanwhile.
	f.put(t, "nowhere", []member{{"a", 1, codec.Tuple{7}}})
	f.copyTo(t, s, "nowhere", 1)
	f.remove(t, "nowhere")
	require.Eventually(t, func() bool {
		v, err := r.Rows(t.Context(), f.target("nowhere"), Page{Limit: 10})
		return err == nil && v.Archived && len(v.Standings) == 1
	}, 10*missingFor, 50*time.Millisecond)
}

func TestTheNewestCopyIsReadAndABackupSaysThatItIsOne(t *testing.T) {
	s := openStore(t, sqliteURL(t))
	r, f := archived(t, func(context.Context) (*store.Store, error) { return s, nil }, time.Minute, 4)
	for revision, points := range []int64{5, 6, 7} {
		f.put(t, "global", []member{{"a", 1, codec.Tuple{points}}})
		f.copyTo(t, s, "global", int64(revision))
		f.remove(t, "global")
		v, err := r.Rows(t.Context(), f.target("global"), Page{Limit: 10})
		require.NoError(t, err)
		require.EqualValues(t, revision, v.Revision)
		require.Equal(t, points, v.Standings[0].Points)
		require.Equal(t, map[bool]string{true: StateBackup, false: StateArchived}[revision == 0], v.State())
		require.Equal(t, revision > 0, v.Complete())
	}
	// After a reopening the window accepts events again, and Redis has it.
	f.put(t, "global", []member{{"a", 1, codec.Tuple{8}}})
	v, err := r.Rows(t.Context(), f.target("global"), Page{Limit: 10})
	require.NoError(t, err)
	require.False(t, v.Archived)
	require.EqualValues(t, 8, v.Standings[0].Points)
}

func TestWhatABoardCountsTodayIsntAskedOfAWindowThatCountedOtherThings(t *testing.T) {
	s := openStore(t, sqliteURL(t))
	r, f := archived(t, func(context.Context) (*store.Store, error) { return s, nil }, time.Minute, 4)
	f.put(t, "arena0", []member{{"a", 1, codec.Tuple{7, 1}}})
	w := f.copyTo(t, s, "arena0", 1)
	other := w
	other.Board, other.Members = "global", 0
	writing, err := s.Begin(t.Context(), leader, other)
	require.NoError(t, err)
	require.NoError(t, writing.Finish(t.Context()))
	f.remove(t, "global")
	v, err := r.Rows(t.Context(), f.target("global"), Page{Limit: 10})
	require.NoError(t, err)
	require.Equal(t, 2, v.Fields.Len(), "the copy's")
	var said *OtherRuleError
	_, err = r.Would(t.Context(), f.target("global"), []int64{3}, 0)
	require.ErrorAs(t, err, &said)
	_, err = r.Rows(t.Context(), f.target("global"), Page{Limit: 10, Points: &[2]int64{1, 2}})
	require.ErrorAs(t, err, &said)
	require.True(t, strings.HasSuffix(err.Error(), "and counts points today"), err)
}
