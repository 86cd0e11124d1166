package rebuild

// What happens between the hold and the swap, and to the answers.

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/ranking"
)

// meddle does something once ingestion is held, just before the swap looks at both sides.
type meddle struct {
	p          *place
	do         func()
	held, done atomic.Bool
}

// meddling has do called, with a client of its own.
func (p *place) meddling(do func(c *redis.Client)) *meddle {
	p.t.Helper()
	o := *p.redis.Options()
	raw := redis.NewClient(&redis.Options{Addr: o.Addr, Dialer: o.Dialer, DB: o.DB, Username: o.Username, Password: o.Password})
	p.t.Cleanup(func() { require.NoError(p.t, raw.Close()) })
	m := &meddle{p: p, do: func() { do(raw) }}
	p.redis.AddHook(m)
	return m
}

func (*meddle) DialHook(next redis.DialHook) redis.DialHook { return next }
func (m *meddle) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		a := cmd.Args() // EVALSHA, its sum, the number of keys, the keys
		if len(a) > 3 && a[2] == 2 && a[3] == m.p.key("hold") {
			m.held.Store(true)
		}
		if len(a) > 3 && a[2] == 8 && a[3] == m.p.key("ledger") && m.held.Load() && m.done.CompareAndSwap(false, true) {
			m.do()
		}
		return next(ctx, cmd)
	}
}
func (*meddle) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// soon is well under how long a swap that gets no answer is asked for.
const soon = 14 * time.Second

func TestAConsumerThatWentOnAsTheHoldLapsedIsFollowedAndTheBoardsAreSwapped(t *testing.T) {
	p := newPlace(t, 21)
	require.NoError(t, p.redis.HSet(t.Context(), p.key("ledger"), topic+"/0", "20").Err())
	m := p.meddling(func(c *redis.Client) { // as if the rebuild had slept past its hold
		require.NoError(t, c.Del(context.Background(), p.key("hold")).Err())
		require.NoError(t, c.HSet(context.Background(), p.key("ledger"), topic+"/0", "21").Err())
	})
	r, err := p.job.Run(t.Context())
	require.NoError(t, err)
	require.True(t, m.done.Load())
	require.True(t, r.Swapped)
	require.Equal(t, 2, r.Holds)
	require.Less(t, r.Took, soon)
	p.nothingLeft()
}

func TestAShardThatIsTornUnderTheHoldIsRefusedAtOnceWithItsReasons(t *testing.T) {
	p := newPlace(t, 20)
	const day = 24 * 60 * 60 * 1000
	now := time.Now().UnixMilli()
	for name, listing := range map[string]string{
		"global:weekly:old": fmt.Sprint(now-30*day, " ", now-23*day, " ", now+30*day), // kept
		"global:weekly:new": fmt.Sprint(now+day, " ", now+7*day, " ", now+30*day),     // to be dropped
	} {
		require.NoError(t, p.redis.HSet(t.Context(), p.key("windows"), name, listing).Err())
		require.NoError(t, p.redis.ZAdd(t.Context(), p.key(name), redis.Z{Score: 1, Member: "m"}).Err())
	}
	p.job.From = ingest.ReplayFrom{Offsets: map[string]int64{topic + "/0": 5}}
	m := p.meddling(func(c *redis.Client) {
		require.NoError(t, c.HSet(context.Background(), p.key("ledger"), topic+"/0", "torn:20").Err())
	})
	began := time.Now()
	_, err := p.job.Run(t.Context())
	require.True(t, m.done.Load())
	var refused *ranking.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Contains(t, err.Error(), "written in part")
	require.Less(t, time.Since(began), soon)
	p.nothingLeft()
}

// stuttering has a network on which every other of some calls is lost.
type stuttering struct {
	is    func(args []any) bool
	calls atomic.Int64
}

func (*stuttering) DialHook(next redis.DialHook) redis.DialHook { return next }
func (s *stuttering) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if s.is(cmd.Args()) && s.calls.Add(1)%2 == 1 {
			cmd.SetErr(io.EOF)
			return io.EOF
		}
		return next(ctx, cmd)
	}
}
func (*stuttering) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func TestAComparisonWaitsOutAFailoverAsEverythingElseDoes(t *testing.T) {
	p := newPlace(t, 40)
	for name := range p.boards() {
		require.NoError(t, p.redis.ZIncrBy(t.Context(), p.key(name), 25, "m3").Err())
	}
	p.job.Compare, p.job.List = true, 10
	s := &stuttering{is: func(a []any) bool { return len(a) > 5 && a[0] == "evalsha" && a[2] == 2 && a[5] == "differing" }}
	p.redis.AddHook(s)
	r, err := p.job.Run(t.Context())
	require.NoError(t, err)
	require.Greater(t, s.calls.Load(), int64(3))
	require.True(t, r.Swapped)
	require.True(t, r.Exact)
	require.Len(t, r.Differences, 1)
	p.nothingLeft()
}

// silent is a Redis whose answers are lost from a swap on, which it carries out or not.
type silent struct {
	p        *place
	executes bool
	from     func() // told when the swap is sent
	since    atomic.Bool
	until    atomic.Bool
}

func (*silent) DialHook(next redis.DialHook) redis.DialHook { return next }
func (s *silent) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		a := cmd.Args()
		if len(a) > 4 && a[3] == s.p.key("hold") && a[4] == s.p.key("~rebuild") && a[2].(int) > 2 && !s.since.Swap(true) {
			if s.executes {
				// The script itself, since none may be known yet.
				a[0], a[1] = "eval", s.p.swapScript()
				require.NoError(s.p.t, next(ctx, cmd))
			}
			s.from()
		}
		if s.since.Load() && !s.until.Load() {
			cmd.SetErr(io.EOF)
			return io.EOF
		}
		return next(ctx, cmd)
	}
}
func (*silent) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (p *place) swapScript() string {
	p.t.Helper()
	source, err := os.ReadFile("../ranking/swap.lua")
	require.NoError(p.t, err)
	return string(source)
}

func TestASwapWhoseAnswerNeverComesIsToldAsThat(t *testing.T) {
	was := leaveTime
	leaveTime = 100 * time.Millisecond
	defer func() { leaveTime = was }()
	p := newPlace(t, 20)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	p.redis.AddHook(&silent{p: p, executes: true, from: stop})
	r, err := p.job.Run(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, r.Swapped)
	require.True(t, r.Unsure)
}

func TestASwapIsAskedForUntilItIsKnownWhatCameOfIt(t *testing.T) {
	was := leaveTime
	leaveTime = 50 * time.Millisecond // which is for those that are told to stop
	defer func() { leaveTime = was }()
	for _, executes := range []bool{true, false} {
		t.Run(fmt.Sprint("executed: ", executes), func(t *testing.T) {
			p := newPlace(t, 20)
			s := &silent{p: p, executes: executes}
			s.from = func() { time.AfterFunc(300*time.Millisecond, func() { s.until.Store(true) }) }
			p.redis.AddHook(s)
			r, err := p.job.Run(t.Context())
			require.NoError(t, err)
			require.True(t, r.Swapped)
			require.False(t, r.Unsure)
			p.nothingLeft()
		})
	}
}

// stopwatch measures how long the hold was there at least.
type stopwatch struct {
	key             string
	taken, released time.Time
}

func (*stopwatch) DialHook(next redis.DialHook) redis.DialHook { return next }
func (s *stopwatch) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		a := cmd.Args()
		if len(a) > 3 && a[2] == 1 && a[3] == s.key && s.released.IsZero() {
			s.released = time.Now()
		}
		err := next(ctx, cmd)
		if len(a) > 3 && a[2] == 2 && a[3] == s.key {
			s.taken = time.Now()
		}
		return err
	}
}
func (*stopwatch) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func TestADryRunSaysHowLongIngestionReallyWasHeld(t *testing.T) {
	p := newPlace(t, 20)
	p.job.DryRun, p.job.Compare, p.job.List = true, true, 10
	s := &stopwatch{key: p.key("hold")}
	p.redis.AddHook(s)
	p.redis.AddHook(slow(20 * time.Millisecond))
	r, err := p.job.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, r.Holds)
	require.GreaterOrEqual(t, r.Held, s.released.Sub(s.taken))
	p.nothingLeft()
}
