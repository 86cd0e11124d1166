package snapshot

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/retry"
	"github.com/standings/standings/test/testenv"
)

// awayable is a place that can't be written to for a while.
type awayable struct {
	Files

	away atomic.Bool
}

var errAway = errors.New("the place is away")

func (a *awayable) Write(ctx context.Context, name string, write func(io.Writer) error) error {
	if a.away.Load() {
		return errAway
	}
	return a.Files.Write(ctx, name, write)
}

// seen is what a keeper reports.
type seen struct {
	mu     sync.Mutex
	kept   []Manifest
	failed map[string]int
}

func (s *seen) now() (kept []Manifest, failed map[string]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	failed = map[string]int{}
	for what, n := range s.failed {
		failed[what] = n
	}
	return s.kept, failed
}

// keeps runs a keeper until the test ends, or stop is called.
func keeps(t *testing.T, k *Keeper) (is *seen, stop func()) {
	t.Helper()
	is = &seen{failed: map[string]int{}}
	k.Log = zap.NewNop()
	k.Pace.Lease = time.Minute
	k.Seen = func(kept []Manifest) { is.mu.Lock(); is.kept = kept; is.mu.Unlock() }
	k.Failed = func(what string, _ error) { is.mu.Lock(); is.failed[what]++; is.mu.Unlock() }
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); k.Run(ctx) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return is, stop
}

func soon(t *testing.T) {
	t.Helper()
	was := again
	again = retry.Policy{First: 5 * time.Millisecond, Longest: 20 * time.Millisecond}
	t.Cleanup(func() { again = was })
}

func TestSnapshotsAreTakenOneAnIntervalAndSoManyAreKept(t *testing.T) {
	soon(t)
	stores, _ := standing(t, testenv.RedisClient(t), testenv.Prefix(t), 2, 20)
	d := in(t)
	k := &Keeper{Store: d, Shards: stores, Interval: 1100 * time.Millisecond, Keep: 2}
	is, stop := keeps(t, k)
	var names []string
	require.Eventually(t, func() bool {
		kept, failed := is.now()
		require.Empty(t, failed)
		require.LessOrEqual(t, len(kept), 3)
		if len(kept) > 0 && (len(names) == 0 || names[len(names)-1] != kept[0].Name) {
			names = append(names, kept[0].Name)
		}
		return len(names) == 4 && len(kept) == 2
	}, 20*time.Second, 5*time.Millisecond)
	stop()
	all, err := d.List(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 2)
	for i := range all {
		for shard := range stores {
			_, err := d.Survey(t.Context(), &all[i], shard)
			require.NoError(t, err)
		}
	}
	for i := 1; i < len(names); i++ {
		before, err1 := time.Parse(nameTime, names[i-1][:16])
		after, err2 := time.Parse(nameTime, names[i][:16])
		require.NoError(t, errors.Join(err1, err2))
		require.GreaterOrEqual(t, after.Sub(before), time.Second)
	}
}

func TestAnotherLeaderTakesTheNextOneWhenThatIsDue(t *testing.T) {
	stores, _ := standing(t, testenv.RedisClient(t), testenv.Prefix(t), 1, 5)
	d := in(t)
	_, err := d.Take(t.Context(), stores, Pace{Lease: time.Minute})
	require.NoError(t, err)
	k := &Keeper{Store: d, Shards: stores, Interval: time.Hour, Keep: 2}
	is, _ := keeps(t, k)
	require.Eventually(t, func() bool { kept, _ := is.now(); return len(kept) == 1 }, 5*time.Second, time.Millisecond)
	wait, err := k.turn(t.Context())
	require.NoError(t, err)
	require.InDelta(t, time.Hour, wait, float64(time.Minute))

	// One of another schema, or of another number of shards, isn't one to wait by.
	other := *k
	other.Shards, _ = standing(t, testenv.RedisClient(t), testenv.Prefix(t), 2, 5)
	all, err := d.List(t.Context())
	require.NoError(t, err)
	require.Positive(t, k.wait(all, time.Now()))
	require.Zero(t, other.wait(all, time.Now()))
	require.Zero(t, k.wait(all, time.Now().Add(-time.Hour)), "the clock went back")
}

func TestAFailureIsReportedAndTriedAgainAndLeavesWhatThereWas(t *testing.T) {
	soon(t)
	stores, _ := standing(t, testenv.RedisClient(t), testenv.Prefix(t), 1, 5)
	d := in(t)
	before, err := d.Take(t.Context(), stores, Pace{Lease: time.Minute})
	require.NoError(t, err)
	place := &awayable{Files: d.Files}
	place.away.Store(true)
	is, _ := keeps(t, &Keeper{Store: Store{place}, Shards: stores, Interval: time.Second, Keep: 2})
	require.Eventually(t, func() bool { _, failed := is.now(); return failed["take"] >= 3 }, 10*time.Second, time.Millisecond)
	kept, _ := is.now()
	require.Equal(t, []Manifest{*before}, kept)
	place.away.Store(false)
	require.Eventually(t, func() bool { kept, _ := is.now(); return len(kept) == 2 }, 10*time.Second, time.Millisecond)
	require.Len(t, names(t, d), 2, "what failed has left nothing")
}

func TestOnlySnapshotsOfTheSamePrefixCount(t *testing.T) {
	stores, _ := standing(t, testenv.RedisClient(t), testenv.Prefix(t), 1, 5)
	d := in(t)
	kept(t, d, 0) // of another
	is, _ := keeps(t, &Keeper{Store: d, Shards: stores, Interval: time.Hour, Keep: 1})
	require.Eventually(t, func() bool { kept, _ := is.now(); return len(kept) == 1 }, 10*time.Second, time.Millisecond)
	require.Len(t, names(t, d), 2)
}
