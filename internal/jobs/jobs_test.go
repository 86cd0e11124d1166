package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, testenv.LeakOptions()...) }

// fakeRedis does what lead.lua does, by the bubble's clock.
type fakeRedis struct {
	mu    sync.Mutex
	token int64
	till  time.Time
	owner string

	fails error         // every call
	hangs time.Duration // every call, whatever its context says
	loses bool          // the answer of every call, which is carried out
	calls int
}

var errLost = errors.New("the answer was lost")

// answer is what a call comes to.
func (r *fakeRedis) answer(ctx context.Context, do func() error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.mu.Lock()
	hangs, fails := r.hangs, r.fails
	r.calls++
	r.mu.Unlock()
	time.Sleep(hangs)
	if fails != nil {
		return fails
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := do(); err != nil || !r.loses {
		return err
	}
	return errLost
}

func (r *fakeRedis) Lead(ctx context.Context, owner string, floor int64, length time.Duration) (token int64, err error) {
	err = r.answer(ctx, func() error {
		if left := time.Until(r.till); r.owner != owner && left > 0 {
			return &ranking.LeaderError{Owner: r.owner, For: left}
		}
		r.token, r.till, r.owner = max(r.token, floor)+1, time.Now().Add(length), owner
		token = r.token
		return nil
	})
	return token, err
}

func (r *fakeRedis) KeepLead(ctx context.Context, owner string, token int64, length time.Duration) error {
	return r.mine(ctx, owner, token, time.Now().Add(length))
}

func (r *fakeRedis) LeaveLead(ctx context.Context, owner string, token int64) error {
	return r.mine(ctx, owner, token, time.Time{})
}

func (r *fakeRedis) mine(ctx context.Context, owner string, token int64, till time.Time) error {
	return r.answer(ctx, func() error {
		if r.owner != owner || r.token != token {
			return fmt.Errorf("no: %w", ranking.ErrNotLeader)
		}
		r.till = till
		return nil
	})
}

func (r *fakeRedis) set(change func(*fakeRedis)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(r)
}

// work records which leader ran a job, and when.
type work struct {
	mu    sync.Mutex
	terms []worked
	now   int           // how many jobs run now
	slow  time.Duration // how long a job takes to stop
}

type worked struct {
	owner       string
	token       int64
	from, until time.Duration // since the test began
	cause       error
}

// until returns the jobs of a leader: one, which runs until its context ends.
func (w *work) until(began time.Time) func(Term) []Job {
	return func(t Term) []Job {
		return []Job{{Name: "work", Every: time.Hour, Run: func(ctx context.Context) (time.Duration, error) {
			w.mu.Lock()
			w.now++
			w.terms = append(w.terms, worked{owner: t.Owner, token: t.Token, from: time.Since(began)})
			i := len(w.terms) - 1
			w.mu.Unlock()
			<-ctx.Done()
			time.Sleep(w.slow)
			w.mu.Lock()
			defer w.mu.Unlock()
			w.now--
			w.terms[i].until, w.terms[i].cause = time.Since(began), context.Cause(ctx)
			return 0, ctx.Err()
		}}}
	}
}

// seen returns the terms so far, and how many jobs run now.
func (w *work) seen() (terms []worked, now int) {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.terms), w.now
}

// holds returns the token and the end of the lease.
func (r *fakeRedis) holds() (token int64, till time.Time) {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.token, r.till
}

const length = 12 * time.Second

func leaderOf(r Redis, owner string, list func(Term) []Job) *Leader {
	return &Leader{Redis: r, Owner: owner, Length: length, Jobs: list, Log: zap.NewNop()}
}

// inBubble runs leaders, and ends them with the test.
func inBubble(t *testing.T, test func(t *testing.T, r *fakeRedis, w *work, start func(owner string) (stop func()))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r, w, began := &fakeRedis{}, &work{}, time.Now()
		var all sync.WaitGroup
		ctx, end := context.WithCancel(t.Context())
		test(t, r, w, func(owner string) func() {
			ctx, stop := context.WithCancel(ctx)
			done := make(chan struct{})
			all.Go(func() {
				defer close(done)
				if err := leaderOf(r, owner, w.until(began)).Run(ctx); err != nil {
					t.Error(err)
				}
			})
			return func() { stop(); <-done }
		})
		end()
		all.Wait()
	})
}

func TestALeaderThatEndsInOrderReleasesTheLease(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fakeRedis, w *work, start func(string) func()) {
		stop := start("a")
		synctest.Wait()
		start("b")
		time.Sleep(time.Hour)
		stop()
		terms, _ := w.seen()
		require.Equal(t, []worked{{"a", 1, 0, time.Hour, context.Canceled}}, terms)
		_, till := r.holds()
		require.Zero(t, till)
		time.Sleep(length / 10)
		terms, _ = w.seen()
		require.Len(t, terms, 2)
		require.Equal(t, "b", terms[1].owner)
		require.EqualValues(t, 2, terms[1].token)
	})
}

// A leader that dies calls Redis no more.
func TestAnotherLeadsOnceTheLeaseOfOneThatDiedHasEnded(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fakeRedis, w *work, start func(string) func()) {
		_, err := r.Lead(t.Context(), "dead", 0, length)
		require.NoError(t, err)
		start("b")
		start("c")
		time.Sleep(length - time.Millisecond)
		terms, _ := w.seen()
		require.Empty(t, terms)
		time.Sleep(length/10 + time.Millisecond)
		terms, now := w.seen()
		require.Len(t, terms, 1)
		require.Equal(t, 1, now)
		require.EqualValues(t, 2, terms[0].token)
	})
}

func TestTheJobsStopBeforeTheLeaseEnds(t *testing.T) {
	for name, fault := range map[string]func(*fakeRedis){
		"refused": func(r *fakeRedis) { r.fails = errors.New("refused") },
		"hangs":   func(r *fakeRedis) { r.hangs = time.Hour },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *fakeRedis, w *work, start func(string) func()) {
				start("a")
				time.Sleep(length/3 + time.Millisecond) // one renewal
				r.set(fault)
				time.Sleep(2 * length)
				terms, now := w.seen()
				require.Len(t, terms, 1)
				require.Zero(t, now)
				require.ErrorIs(t, terms[0].cause, ErrExpired)
				require.Equal(t, length/3+length*5/6, terms[0].until)
				r.set(func(r *fakeRedis) { r.fails, r.hangs = nil, 0 })
				time.Sleep(2 * time.Hour)
				terms, now = w.seen()
				require.Len(t, terms, 2)
				require.Equal(t, 1, now)
				require.Greater(t, terms[1].token, terms[0].token)
			})
		})
	}
}

func TestASlowAnswerCountsFromBeforeItsCall(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fakeRedis, w *work, start func(string) func()) {
		r.set(func(r *fakeRedis) { r.hangs = length / 4 })
		start("a")
		time.Sleep(length / 2)
		r.set(func(r *fakeRedis) { r.fails = errors.New("refused") })
		time.Sleep(3 * length)
		terms, _ := w.seen()
		require.Len(t, terms, 1)
		require.Equal(t, length/4, terms[0].from)
		require.Equal(t, length/3+length*5/6, terms[0].until, "renewed a third after the first call")
	})
}

func TestALeaderWhoseLeaseIsAnothersStops(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fakeRedis, w *work, start func(string) func()) {
		start("a")
		time.Sleep(length)
		r.set(func(r *fakeRedis) { r.owner, r.token, r.till = "b", 7, time.Now().Add(length) })
		time.Sleep(length / 2)
		terms, now := w.seen()
		require.Zero(t, now)
		require.ErrorIs(t, terms[0].cause, ranking.ErrNotLeader)
		time.Sleep(2 * length)
		terms, now = w.seen()
		require.Equal(t, 1, now)
		require.EqualValues(t, 8, terms[1].token)
	})
}

// Redis ran the call and its answer was lost: the owner of the lease doesn't know its token.
func TestALostAnswerCostsAToken(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fakeRedis, w *work, start func(string) func()) {
		r.set(func(r *fakeRedis) { r.loses = true })
		start("a")
		time.Sleep(time.Second)
		r.set(func(r *fakeRedis) { r.loses = false })
		time.Sleep(length)
		terms, _ := w.seen()
		require.Len(t, terms, 1)
		token, _ := r.holds()
		require.Equal(t, token, terms[0].token)
		require.Greater(t, token, int64(1))
	})
}

func TestAFencedJobHasTheLeaseTakenWithALargerToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &fakeRedis{}
		ctx, end := context.WithCancel(t.Context())
		var tokens []int64
		var leading []bool
		l := leaderOf(r, "a", func(of Term) []Job {
			return []Job{{Name: "write", Every: time.Hour, Run: func(context.Context) (time.Duration, error) {
				if tokens = append(tokens, of.Token); len(tokens) == 3 {
					end()
				}
				return 0, fmt.Errorf("write: %w", &FencedError{Floor: 20 * of.Token, Err: errors.New("fenced")})
			}}}
		})
		l.Leading = func(is bool) { leading = append(leading, is) }
		began := time.Now()
		require.NoError(t, l.Run(ctx))
		require.Equal(t, []int64{1, 21, 421}, tokens)
		require.Equal(t, []bool{true, false, true, false, true, false}, leading)
		require.Zero(t, r.till)
		require.Less(t, time.Since(began), length/2)
	})
}

// Whatever fails, two processes never run jobs at the same time if their clocks run alike.
func TestTwoNeverLeadAtATime(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fakeRedis, w *work, start func(string) func()) {
		w.slow = length / 7
		stops := map[string]func(){}
		for i := range 200 {
			owner := fmt.Sprint("o", i%5)
			switch {
			case i%7 == 0:
				r.set(func(r *fakeRedis) { r.fails, r.loses = nil, !r.loses })
			case i%11 == 0:
				r.set(func(r *fakeRedis) { r.fails = errors.New("refused") })
			case stops[owner] == nil:
				stops[owner] = start(owner)
			case i%3 == 0:
				stops[owner]()
				stops[owner] = nil
			}
			time.Sleep(time.Duration(i%13) * time.Second)
			_, now := w.seen()
			require.LessOrEqual(t, now, 1)
		}
		r.set(func(r *fakeRedis) { r.fails, r.loses = nil, false })
		start("last")
		time.Sleep(2 * length)
		terms, now := w.seen()
		require.Equal(t, 1, now)
		for i := 1; i < len(terms); i++ {
			require.Greater(t, terms[i].token, terms[i-1].token)
			require.GreaterOrEqual(t, terms[i].from, terms[i-1].until)
		}
		require.Greater(t, len(terms), 10)
	})
}

func TestALeaseThatIsTooShortIsRefused(t *testing.T) {
	l := leaderOf(&fakeRedis{}, "a", nil)
	l.Length = MinLength - 1
	require.ErrorContains(t, l.Run(t.Context()), "1s at least")
	require.Error(t, leaderOf(&fakeRedis{}, "", nil).Run(t.Context()))
	one, other := NewOwner(), NewOwner()
	require.NotEqual(t, one, other)
}
