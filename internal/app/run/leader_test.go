package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	_ "modernc.org/sqlite"

	"github.com/standings/standings/internal/archive/finaltest"
	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/jobs"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

// leads runs a replica as the leader, which archives and does not seal, until the test ends or calls end.
func leads(t *testing.T, w *finaltest.World, url string) (p *process, end func()) {
	t.Helper()
	cfg := config.Defaults()
	cfg.Archive.URL, cfg.Archive.Interval, cfg.Listen = url, 0, config.Off
	p = &process{log: zap.NewNop(), client: w.Redis, ops: &operations{measured: newMeasured(w.Redis)}}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.lead(ctx, cfg, w.Boards, nil)
	}()
	end = func() { stop(); <-ended }
	t.Cleanup(end)
	return p, end
}

func archivedRevision(t *testing.T, s *store.Store, w *finaltest.World) (revision int64) {
	t.Helper()
	found, err := s.Window(t.Context(), w.Board, "weekly", w.Window.Name)
	if err != nil {
		require.ErrorIs(t, err, store.ErrNotFound)
		return 0
	}
	return found.Revision
}

// The leader reads all windows once a minute. It learns of another replica's seal earlier, from Redis.
func TestAWindowThatOneReplicaSealsIsArchivedByTheLeaderWithinSeconds(t *testing.T) {
	for _, of := range []ledger.Shards{1, 3} {
		w := finaltest.New(t, of, "")
		w.Fill(50)
		url := "sqlite:" + filepath.Join(t.TempDir(), "archive.db")
		p, end := leads(t, w, url)
		leader := func() float64 { return testutil.ToFloat64(p.ops.leader) }
		first := func() bool { // nothing is final at its first pass
			return testutil.CollectAndCount(p.ops.archived) > 0
		}
		require.Eventually(t, first, time.Minute, 10*time.Millisecond)
		require.InDelta(t, 1, leader(), 0)
		s, err := store.Open(t.Context(), url)
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		for revision := range int64(2) {
			require.Equal(t, revision, archivedRevision(t, s, w))
			w.MakeFinal() // as another replica
			require.Eventually(t, func() bool { return archivedRevision(t, s, w) == revision+1 }, archiveEvery/3, 10*time.Millisecond)
			w.Reopen()
		}
		end()
		require.Zero(t, leader())
		require.Zero(t, testutil.CollectAndCount(p.ops.archived))
		require.Zero(t, testutil.CollectAndCount(p.ops.failing))
		_, err = w.Shards()[0].Lead(t.Context(), "another", 0, time.Minute)
		require.NoError(t, err, "it has released the lease")
	}
}

// Redis was wiped, and issues tokens that are smaller than the archive's. The leader takes a larger one.
func TestALeaderWhoseTokenIsSmallerThanTheArchivesTakesALargerOne(t *testing.T) {
	w := finaltest.New(t, 1, "")
	w.Fill(50)
	w.MakeFinal()
	url := "sqlite:" + filepath.Join(t.TempDir(), "archive.db")
	s, err := store.Open(t.Context(), url)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	require.NoError(t, s.Migrate(t.Context()))
	require.NoError(t, s.Take(t.Context(), store.Fence{Token: 41, Owner: "before"}))
	leads(t, w, url)
	require.Eventually(t, func() bool { return archivedRevision(t, s, w) == 1 }, time.Minute, 10*time.Millisecond)
	token, err := s.LargestToken(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 42, token)
}

// If the archive is unavailable, its job fails, and no other job waits for it.
func TestAnArchiveThatIsAwayIsReportedAndUsedOnceItIsThere(t *testing.T) {
	w := finaltest.New(t, 1, "")
	w.Fill(50)
	w.MakeFinal()
	path := filepath.Join(t.TempDir(), "missing", "archive.db")
	p, _ := leads(t, w, "sqlite:"+path)
	failing := func(job string) float64 { return testutil.ToFloat64(p.ops.failing.WithLabelValues(job)) }
	require.Eventually(t, func() bool { return failing("archive") == 1 }, time.Minute, 10*time.Millisecond)
	require.Zero(t, failing("retire"))
	require.Zero(t, testutil.CollectAndCount(p.ops.archived))
	require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
	s, err := store.Open(t.Context(), "sqlite:"+path)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	require.Eventually(t, func() bool { return failing("archive") == 0 && archivedRevision(t, s, w) == 1 }, time.Minute, 10*time.Millisecond)
}

// At a first start the metrics are measured before anything is written. That is not a failure.
func TestThatNothingHasBegunYetIsNoFailureAndIsTriedAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.WarnLevel)
		ctx, cancel := context.WithCancel(t.Context())
		results := []error{&ranking.SchemaError{Prefix: "lb"}, &ranking.SchemaError{Prefix: "lb"}, errors.New("refused")}
		runs, unknown := 0, 0
		began := time.Now()
		jobs.Repeat(ctx, zap.New(core), look("count boards", time.Hour, func() { unknown++ }, func(context.Context) (time.Duration, error) {
			if runs++; runs > len(results) {
				cancel()
				return 0, nil
			}
			return 0, results[runs-1]
		}))
		require.Equal(t, 1, logs.Len())
		require.Equal(t, "a job failed; it is repeated", logs.All()[0].Message)
		require.Equal(t, 3, unknown)
		require.Less(t, time.Since(began), 5*time.Second)
	})
}
