package jobs

// The lease in Redis and the fence in SQL together: what one can't hold, the other does.

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	_ "modernc.org/sqlite"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/testenv"
)

func ofRedis(t *testing.T, r *testenv.RedisServer, prefix string) *ranking.Store {
	t.Helper()
	return ranking.New(ranking.Config{Client: r.Client(t), Prefix: prefix, Timeout: 20 * time.Second})
}

func onBothArchives(t *testing.T, test func(t *testing.T, s *store.Store)) {
	t.Helper()
	for name, url := range map[string]func(testing.TB) string{
		"sqlite":   func(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "archive.db") },
		"postgres": func(t testing.TB) string { return testenv.Postgres(t) },
	} {
		t.Run(name, func(t *testing.T) {
			s, err := store.Open(t.Context(), url(t))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			require.NoError(t, s.Migrate(t.Context()))
			test(t, s)
		})
	}
}

// copied begins a copy as a leader, and adds its first row.
func copied(t *testing.T, s *store.Store, token int64, owner string) (*store.Writing, error) {
	t.Helper()
	week := time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)
	w, err := s.Begin(t.Context(), store.Fence{Token: token, Owner: owner}, store.Window{
		Board: "global", Period: "weekly", Name: "2026-W47", Start: week, End: week.AddDate(0, 0, 7), Revision: 1,
		AsOf: week.AddDate(0, 0, 8), SealedAt: week.AddDate(0, 0, 8), Zone: "UTC", Tick: time.Millisecond, Members: 2,
	})
	if err != nil {
		return nil, err
	}
	return w, w.Append(t.Context(), []store.Row{row(1)})
}

func row(rank int64) store.Row {
	return store.Row{Place: rank, Rank: rank, Member: string(rune('a' + rank)), Tuple: codec.Tuple{10}, Score: 10, ReachedAt: 1_800_000_000_000}
}

// Redis goes back to before a led, and gives b the token that a writes by.
func TestTwoThatHaveTheSameTokenDoNotBothWrite(t *testing.T) {
	onBothArchives(t, func(t *testing.T, s *store.Store) {
		server := testenv.PrivateRedis(t)
		r := ofRedis(t, server, "lb")
		dump := server.Dump()
		floor, err := s.LargestToken(t.Context())
		require.NoError(t, err)
		a, err := r.Lead(t.Context(), "a", floor, time.Hour)
		require.NoError(t, err)
		server.Restart(dump)
		b, err := r.Lead(t.Context(), "b", floor, time.Hour)
		require.NoError(t, err)
		require.Equal(t, a, b)

		byA, err := copied(t, s, a, "a")
		require.NoError(t, err)
		_, err = copied(t, s, b, "b")
		require.ErrorIs(t, err, store.ErrFenced)

		// b leads again, above what a has written by.
		floor, err = s.LargestToken(t.Context())
		require.NoError(t, err)
		b, err = r.Lead(t.Context(), "b", floor, time.Hour)
		require.NoError(t, err)
		require.Greater(t, b, a)
		byB, err := copied(t, s, b, "b")
		require.NoError(t, err)
		require.ErrorIs(t, byA.Append(t.Context(), []store.Row{row(2)}), store.ErrFenced)
		require.ErrorIs(t, r.KeepLead(t.Context(), "a", a, time.Hour), ranking.ErrNotLeader)
		require.NoError(t, byB.Append(t.Context(), []store.Row{row(2)}))
		require.NoError(t, byB.Finish(t.Context()))
		require.NoError(t, s.Verify(t.Context(), byB.Window().ID))
	})
}

// A leader that doesn't stop in time, like one that was paused, writes nothing after the next leader has.
func TestALeaderThatDoesNotStopIsFenced(t *testing.T) {
	onBothArchives(t, func(t *testing.T, s *store.Store) {
		r := ofRedis(t, testenv.Redis(t), testenv.Prefix(t))
		ctx, end := context.WithCancel(t.Context())
		run := func(owner string, do func(ctx context.Context, token int64) error) <-chan error {
			done := make(chan error, 1)
			l := &Leader{Redis: r, Owner: owner, Length: MinLength, Log: zap.NewNop(), Jobs: func(of Term) []Job {
				return []Job{{Name: "copy", Every: time.Hour, Run: func(ctx context.Context) (time.Duration, error) { return 0, do(ctx, of.Token) }}}
			}}
			go func() { done <- l.Run(ctx) }()
			return done
		}
		wrote, goOn := make(chan struct{}), make(chan struct{})
		var late error
		doneA := run("a", func(leading context.Context, token int64) error {
			w, err := copied(t, s, token, "a")
			if err != nil {
				return err
			}
			close(wrote)
			<-goOn
			late = w.Append(context.WithoutCancel(leading), []store.Row{row(2)})
			end()
			return nil
		})
		<-wrote
		// The lease ends without a's knowledge, as during a pause.
		token, err := r.Lead(t.Context(), "a", 100, time.Nanosecond)
		require.NoError(t, err)
		require.EqualValues(t, 101, token)
		var whole store.Window
		doneB := run("b", func(_ context.Context, token int64) error {
			w, err := copied(t, s, token, "b")
			if err == nil {
				err = w.Append(t.Context(), []store.Row{row(2)})
			}
			if err == nil {
				err = w.Finish(t.Context())
			}
			if err == nil {
				whole = w.Window()
			}
			close(goOn)
			<-ctx.Done()
			return err
		})
		require.NoError(t, <-doneA)
		require.NoError(t, <-doneB)
		require.ErrorIs(t, late, store.ErrFenced)
		written, err := s.LargestToken(t.Context())
		require.NoError(t, err)
		require.Greater(t, written, int64(101))
		require.NoError(t, s.Verify(t.Context(), whole.ID))
	})
}
