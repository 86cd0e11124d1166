package lease

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

// work is what is done by leaders: who, when.
type work struct {
	mu    sync.Mutex
	turns []turn
	now   int           // how many are at it
	slow  time.Duration // how long it takes to stop
}

type turn struct {
	owner       string
	token       int64
	from, until time.Duration // since the test began
	cause       error
}

// until is a leader's work: it goes on until its context ends.
func (w *work) until(began time.Time, owner string) func(context.Context, int64) error {
	return func(ctx context.Context, token int64) error {
		w.mu.Lock()
		w.now++
		w.turns = append(w.turns, turn{owner: owner, token: token, from: time.Since(began)})
		i := len(w.turns) - 1
		w.mu.Unlock()
		<-ctx.Done()
		time.Sleep(w.slow)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.now--
		w.turns[i].until, w.turns[i].cause = time.Since(began), context.Cause(ctx)
		return ctx.Err()
	}
}

// seen is what was done, and how many are at it, once everybody else waits.
func (w *work) seen() (turns []turn, now int) {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.turns), w.now
}

// holds is by which token who has the lease until when, once everybody else waits.
func (r *fakeRedis) holds() (token int64, till time.Time) {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.token, r.till
}

const length = 12 * time.Second

func leaseOf(r Redis, owner string) *Lease {
	return &Lease{Redis: r, Owner: owner, Length: length, Floor: func(context.Context) (int64, error) { return 0, nil }, Log: zap.NewNop()}
}

// inBubble runs leases with their work, and ends them with the test.
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
				if err := leaseOf(r, owner).Run(ctx, w.until(began, owner)); err != nil {
					t.Error(err)
				}
			})
			return func() { stop(); <-done }
		})
		end()
		all.Wait()
	})
}

func TestOneLeadsForAsLongAsItRenews(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fakeRedis, w *work, start func(string) func()) {
		stop := start("a")
		synctest.Wait()
		start("b")
		time.Sleep(time.Hour)
		stop()
		turns, _ := w.seen()
		require.Equal(t, []turn{{"a", 1, 0, time.Hour, context.Canceled}}, turns)
		_, till := r.holds()
		require.Zero(t, till, "it is let go of")
		time.Sleep(length / 2)
		turns, _ = w.seen()
		require.Len(t, turns, 2)
		require.Equal(t, "b", turns[1].owner)
		require.EqualValues(t, 2, turns[1].token)
	})
}

func TestTheWorkStopsBeforeTheLeaseEnds(t *testing.T) {
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
				turns, now := w.seen()
				require.Len(t, turns, 1)
				require.Zero(t, now)
				require.ErrorIs(t, turns[0].cause, ErrExpired)
				require.Equal(t, length/3+length*5/6, turns[0].until)
				r.set(func(r *fakeRedis) { r.fails, r.hangs = nil, 0 })
				time.Sleep(2 * time.Hour)
				turns, now = w.seen()
				require.Len(t, turns, 2)
				require.Equal(t, 1, now)
				require.Greater(t, turns[1].token, turns[0].token)
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
		turns, _ := w.seen()
		require.Len(t, turns, 1)
		require.Equal(t, length/4, turns[0].from)
		require.Equal(t, length/3+length*5/6, turns[0].until, "renewed a third after it was asked for")
	})
}

func TestWhoseLeaseIsAnothersStops(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fakeRedis, w *work, start func(string) func()) {
		start("a")
		time.Sleep(length)
		r.set(func(r *fakeRedis) { r.owner, r.token, r.till = "b", 7, time.Now().Add(length) })
		time.Sleep(length / 2)
		turns, now := w.seen()
		require.Zero(t, now)
		require.ErrorIs(t, turns[0].cause, ranking.ErrNotLeader)
		time.Sleep(2 * length)
		turns, now = w.seen()
		require.Equal(t, 1, now)
		require.EqualValues(t, 8, turns[1].token)
	})
}

// Redis has carried out what it doesn't answer: whoever has the lease doesn't know by which token.
func TestALostAnswerCostsAToken(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fakeRedis, w *work, start func(string) func()) {
		r.set(func(r *fakeRedis) { r.loses = true })
		start("a")
		time.Sleep(time.Second)
		r.set(func(r *fakeRedis) { r.loses = false })
		time.Sleep(length)
		turns, _ := w.seen()
		require.Len(t, turns, 1)
		token, _ := r.holds()
		require.Equal(t, token, turns[0].token)
		require.Greater(t, token, int64(1))
	})
}

func TestWorkThatEndsByItselfLetsAnotherLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &fakeRedis{}
		ctx, end := context.WithCancel(t.Context())
		var tokens, leading []int64
		failed := errors.New("fenced")
		floor := int64(0)
		l := leaseOf(r, "a")
		l.Floor = func(context.Context) (int64, error) {
			if floor++; floor%2 == 1 {
				return 0, errors.New("the archive is away")
			}
			return floor * 10, nil
		}
		l.Leading = func(token int64) { leading = append(leading, token) }
		require.NoError(t, l.Run(ctx, func(context.Context, int64) error {
			tokens = append(tokens, r.token)
			if len(tokens) == 3 {
				end()
				return nil
			}
			return failed
		}))
		require.Equal(t, []int64{21, 41, 61}, tokens, "each above what was written by")
		require.Equal(t, []int64{21, 0, 41, 0, 61, 0}, leading)
		require.Zero(t, r.till)
	})
}

// However many there are, and whatever fails: two never lead at a time, by clocks that run alike.
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
		turns, now := w.seen()
		require.Equal(t, 1, now)
		for i := 1; i < len(turns); i++ {
			require.Greater(t, turns[i].token, turns[i-1].token)
			require.GreaterOrEqual(t, turns[i].from, turns[i-1].until)
		}
		require.Greater(t, len(turns), 10)
	})
}

func TestALeaseThatIsTooShortIsRefused(t *testing.T) {
	l := leaseOf(&fakeRedis{}, "a")
	l.Length = MinLength - 1
	require.ErrorContains(t, l.Run(t.Context(), nil), "1s at least")
	l = leaseOf(&fakeRedis{}, "")
	require.Error(t, l.Run(t.Context(), nil))
	one, other := NewOwner(), NewOwner()
	require.NotEqual(t, one, other)
}
