package jobs

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// scheduled leads with some jobs for a time, and returns the reports of their runs and the log.
func scheduled(t *testing.T, d time.Duration, list ...Job) (reported []string, logs *observer.ObservedLogs) {
	t.Helper()
	ctx, end := context.WithTimeout(t.Context(), d)
	defer end()
	core, logs := observer.New(zap.WarnLevel)
	all := make(chan string, 10_000)
	l := leaderOf(&fakeRedis{}, "a", func(Term) []Job { return list })
	l.Log = zap.New(core)
	l.Report = func(job string, err error) { all <- fmt.Sprint(job, ": ", err) }
	require.NoError(t, l.Run(ctx))
	close(all)
	for one := range all {
		reported = append(reported, one)
	}
	return reported, logs
}

func TestAJobRunsAtOnceAndRestsAfterEachRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		scheduled(t, 10*time.Minute, Job{Name: "count", Every: time.Minute, Run: func(context.Context) (time.Duration, error) {
			at = append(at, time.Since(began))
			time.Sleep(30 * time.Second)
			if len(at) == 2 {
				return time.Second, nil
			}
			return 0, nil
		}})
		require.Equal(t, []time.Duration{0, 90 * time.Second, 121 * time.Second, 211 * time.Second}, at[:4])
	})
}

func TestAJobThatFailsIsRepeatedWithGrowingPausesAndReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Time
		failed := errors.New("refused")
		reported, logs := scheduled(t, time.Hour, Job{Name: "count", Every: 2 * time.Hour, Run: func(context.Context) (time.Duration, error) {
			if at = append(at, time.Now()); len(at) == 40 {
				return 0, nil
			}
			return 0, failed
		}})
		require.Less(t, at[1].Sub(at[0]), 2*firstPause)
		require.Greater(t, at[39].Sub(at[38]), longestPause/3)
		require.LessOrEqual(t, at[39].Sub(at[38]), longestPause*3/2)
		require.Len(t, at, 40, "once it has succeeded, it rests")
		require.Len(t, reported, 40)
		require.Equal(t, "count: refused", reported[0])
		require.Equal(t, "count: <nil>", reported[39])
		require.LessOrEqual(t, logs.Len(), 6, "every ten minutes")
		require.Equal(t, map[string]any{"job": "count", "error": "refused"}, logs.All()[0].ContextMap())
	})
}

func TestAJobThatHangsOrFailsDoesNotStopOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs, tokens := 0, 0
		scheduled(t, time.Hour,
			Job{Name: "hang", Every: time.Second, Run: func(ctx context.Context) (time.Duration, error) {
				tokens++
				<-ctx.Done()
				return 0, nil
			}},
			Job{Name: "fail", Every: time.Second, Run: func(context.Context) (time.Duration, error) { return 0, errors.New("no") }},
			Job{Name: "count", Every: time.Second, Run: func(context.Context) (time.Duration, error) { runs++; return 0, nil }},
		)
		require.InDelta(t, 3600, runs, 1)
		require.Equal(t, 1, tokens, "in one term")
	})
}

func TestAJobRunsEarlyIfItsVersionChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		var version atomic.Int64
		var unknown atomic.Bool
		time.AfterFunc(1500*time.Millisecond, func() { version.Add(1) })
		time.AfterFunc(10*time.Second, func() { unknown.Store(true) })
		time.AfterFunc(20*time.Second, func() { unknown.Store(false) })
		scheduled(t, 100*time.Second, Job{Name: "archive", Every: time.Minute,
			Version: func(context.Context) (int64, error) {
				if unknown.Load() {
					return 0, errors.New("refused")
				}
				return version.Load(), nil
			},
			Run: func(context.Context) (time.Duration, error) {
				if at = append(at, time.Since(began)); len(at) == 2 {
					version.Add(1) // during the run: what was there before may have been missed
				}
				return 0, nil
			}})
		require.Equal(t, []time.Duration{0, 2 * time.Second, 3 * time.Second, 63 * time.Second}, at)
	})
}

func TestJobsAreRepeatedWithoutALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		runs := 0
		Repeat(ctx, zap.NewNop(), Job{Name: "count", Every: time.Second, Run: func(context.Context) (time.Duration, error) { runs++; return 0, nil }})
		require.InDelta(t, 60, runs, 1)
	})
}
