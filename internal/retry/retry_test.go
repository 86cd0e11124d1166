package retry

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

var errEnded = errors.New("it has ended")

func TestSleepTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		require.NoError(t, Sleep(t.Context(), time.Minute))
		require.Equal(t, time.Minute, time.Since(began))
		require.NoError(t, Sleep(t.Context(), 0))
		require.NoError(t, Sleep(t.Context(), -time.Second))
		require.Equal(t, time.Minute, time.Since(began))
	})
}

func TestSleepEndsWithTheContextAndReturnsItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errEnded)
		defer cancel()
		began := time.Now()
		require.ErrorIs(t, Sleep(ctx, time.Minute), errEnded)
		require.Equal(t, time.Second, time.Since(began))
		require.ErrorIs(t, Sleep(ctx, time.Minute), errEnded)
		require.Equal(t, time.Second, time.Since(began))
	})
}

func TestWaitsGrowByHalfUpToTheLongestAndAreSpreadAtRandom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := Policy{First: 100 * time.Millisecond, Longest: time.Second}.Start()
		for range 2 {
			spread := false
			for _, ms := range []int64{100, 150, 225, 337, 506, 759, 1000, 1000, 1000} {
				length := time.Duration(ms) * time.Millisecond
				began := time.Now()
				require.NoError(t, b.Next(t.Context()))
				took := time.Since(began)
				require.InDelta(t, length, took, float64(length/2+time.Millisecond))
				spread = spread || (took-length).Abs() > time.Millisecond
			}
			require.True(t, spread)
			b.Reset()
		}
	})
}

func TestWithoutPatienceSetWaitsGoOnForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := Policy{First: time.Hour, Longest: time.Hour}.Start()
		for range 1000 {
			require.NoError(t, b.Next(t.Context()))
		}
	})
}

func TestPatienceIsCountedFromTheStartAndFromAReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const patience = time.Minute
		b := Policy{First: time.Second, Longest: time.Second, Patience: patience}.Start()
		for range 2 {
			began, asked := time.Now(), time.Now()
			err := error(nil)
			for tries := 0; err == nil; tries++ {
				require.Less(t, tries, 1000, "it goes on for ever")
				asked = time.Now()
				err = b.Next(t.Context())
			}
			require.ErrorIs(t, err, ErrPatience)
			require.Zero(t, time.Since(asked), "what would come too late isn't waited for")
			took := time.Since(began)
			require.LessOrEqual(t, took, patience)
			require.Greater(t, took, patience-2*time.Second)
			b.Reset()
		}
	})
}

func TestDoTriesWhileTheErrorPasses(t *testing.T) {
	away, refused := errors.New("away"), errors.New("refused")
	for _, c := range []struct {
		name     string
		patience time.Duration
		limit    time.Duration // of the context
		answers  []error       // the last one is repeated
		want     error
		tries    int // 0: several
	}{
		{name: "it succeeds at once", answers: []error{nil}, tries: 1},
		{name: "it succeeds after a while", answers: []error{away, away, away, nil}, tries: 4},
		{name: "an error that won't pass is returned at once", answers: []error{refused}, want: refused, tries: 1},
		{name: "one that follows others, too", answers: []error{away, away, refused}, want: refused, tries: 3},
		{name: "the last error is returned where patience is over", patience: time.Minute, answers: []error{away}, want: away},
		{name: "the context's cause where that ends", limit: time.Minute, answers: []error{away}, want: errEnded},
		{name: "success counts although the context has ended", limit: 1, answers: []error{nil}, tries: 1},
		{name: "an error that won't pass counts, too", limit: 1, answers: []error{refused}, want: refused, tries: 1},
		{name: "who begins with a context that has ended tries once", limit: 1, answers: []error{away, nil}, want: errEnded, tries: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if c.limit > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeoutCause(ctx, c.limit, errEnded)
					defer cancel()
				}
				if c.limit == 1 {
					<-ctx.Done()
				}
				began, tries := time.Now(), 0
				err := Policy{First: time.Second, Longest: 2 * time.Second, Patience: c.patience}.Do(ctx,
					func(err error) bool { return errors.Is(err, away) },
					func() error {
						tries++
						require.Less(t, tries, 1000, "it goes on for ever")
						return c.answers[min(tries, len(c.answers))-1]
					})
				if c.want == nil {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, c.want)
				}
				if c.tries > 0 {
					require.Equal(t, c.tries, tries)
				} else {
					require.Greater(t, tries, 10)
				}
				require.LessOrEqual(t, time.Since(began), time.Minute)
				require.Equal(t, tries > 1, time.Since(began) > 0, "between two tries it waits, and only there")
			})
		})
	}
}
