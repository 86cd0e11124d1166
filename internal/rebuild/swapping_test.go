package rebuild

// Events between the hold and the swap, and lost replies.

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ingest/replay"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/lua"
	"github.com/standings/standings/internal/ranking/shadow"
)

// meddle calls do once ingestion is held, just before the swap compares both sides, with a client of its
// own.
func (p *place) meddle(do func(c *redis.Client)) (done *atomic.Bool) {
	p.t.Helper()
	o := *p.redis.Options()
	raw := redis.NewClient(&redis.Options{Addr: o.Addr, Dialer: o.Dialer, DB: o.DB, Username: o.Username, Password: o.Password})
	p.t.Cleanup(func() { require.NoError(p.t, raw.Close()) })
	var held atomic.Bool
	done = new(atomic.Bool)
	p.redis.AddHook(hooked(func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
		if calls(cmd, 2, p.key("hold")) {
			held.Store(true)
		}
		if calls(cmd, 8, p.key("ledger")) && held.Load() && done.CompareAndSwap(false, true) {
			do(raw)
		}
		return next(ctx, cmd)
	}))
	return done
}

// soon is well below the time for which a swap without a reply is retried.
const soon = 14 * time.Second

func TestAConsumerThatWentOnAsTheHoldLapsedIsFollowedAndTheBoardsAreSwapped(t *testing.T) {
	onShards(t, func(t *testing.T, of ledger.Shards) {
		p := newPlace(t, of, 21)
		p.job.Compare = true // so that it holds ingestion
		require.NoError(t, p.redis.HSet(t.Context(), p.key("ledger"), topic+"/0", "20").Err())
		done := p.meddle(func(c *redis.Client) { // as if the rebuild had paused for longer than its hold
			require.NoError(t, c.Del(context.Background(), p.key("hold")).Err())
			require.NoError(t, c.HSet(context.Background(), p.key("ledger"), topic+"/0", "21").Err())
		})
		r, err := p.job.Run(t.Context())
		require.NoError(t, err)
		require.True(t, done.Load())
		require.True(t, r.Swapped)
		require.Equal(t, int(of)+1, r.Holds)
		require.Less(t, r.Took, soon)
		p.nothingLeft()
	})
}

// listed returns a listing of a board with the default rule.
func listed(start, end, expires int64) string {
	l := ranking.Listing{Window: ledger.Window{Start: start, End: end}, Expires: expires}
	return l.Text()
}

func TestAShardThatIsTornUnderTheHoldIsRefusedAtOnceWithItsReasons(t *testing.T) {
	onShards(t, func(t *testing.T, of ledger.Shards) {
		p := newPlace(t, of, 20)
		const day = 24 * 60 * 60 * 1000
		now := time.Now().UnixMilli()
		for name, listing := range map[string]string{
			"global:weekly:old": listed(now-30*day, now-23*day, now+30*day), // kept
			"global:weekly:new": listed(now+day, now+7*day, now+30*day),     // to be dropped
		} {
			require.NoError(t, p.redis.HSet(t.Context(), p.key("windows"), name, listing).Err())
			require.NoError(t, p.redis.ZAdd(t.Context(), p.key(name), redis.Z{Score: 1, Member: "m"}).Err())
		}
		p.job.From = replay.From{Offsets: map[string]int64{topic + "/0": 5}}
		done := p.meddle(func(c *redis.Client) {
			require.NoError(t, c.HSet(context.Background(), p.key("ledger"), topic+"/0", "torn:20").Err())
		})
		began := time.Now()
		_, err := p.job.Run(t.Context())
		require.True(t, done.Load())
		var refused *shadow.RefusedError
		require.ErrorAs(t, err, &refused)
		require.Contains(t, err.Error(), "written in part")
		require.Less(t, time.Since(began), soon)
		p.nothingLeft()
	})
}

// silence loses the replies from the swap on, which is executed or not, until end is set. It calls from
// when the swap is sent.
func (p *place) silence(executes bool, from func()) (end *atomic.Bool) {
	var since atomic.Bool
	end = new(atomic.Bool)
	p.redis.AddHook(hooked(func(ctx context.Context, cmd redis.Cmder, do redis.ProcessHook) error {
		a := cmd.Args()
		if len(a) > 4 && a[3] == p.key("hold") && a[4] == p.key("~rebuild") && a[2].(int) > 2 && !since.Swap(true) {
			if executes {
				// The script's source is sent, since the server may not have the script.
				a[0], a[1] = "eval", lua.Swap.Source
				require.NoError(p.t, do(ctx, cmd))
			}
			from()
		}
		if since.Load() && !end.Load() {
			cmd.SetErr(io.EOF)
			return io.EOF
		}
		return do(ctx, cmd)
	}))
	return end
}

func TestASwapWhoseAnswerNeverComesIsToldAsThat(t *testing.T) {
	onShards(t, func(t *testing.T, of ledger.Shards) {
		p := newPlace(t, of, 20)
		p.job.patience.leaveTime = 100 * time.Millisecond
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		p.silence(true, stop)
		r, err := p.job.Run(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.False(t, r.Swapped)
		require.True(t, r.Unsure)
	})
}

func TestASwapIsAskedForUntilItIsKnownWhatCameOfIt(t *testing.T) {
	onShards(t, func(t *testing.T, of ledger.Shards) {
		for _, executes := range []bool{true, false} {
			t.Run(fmt.Sprint("executed: ", executes), func(t *testing.T) {
				p := newPlace(t, of, 20)
				p.job.patience.leaveTime = 50 * time.Millisecond // applies only after the context has ended
				var end *atomic.Bool
				end = p.silence(executes, func() { time.AfterFunc(300*time.Millisecond, func() { end.Store(true) }) })
				r, err := p.job.Run(t.Context())
				require.NoError(t, err)
				require.True(t, r.Swapped)
				require.False(t, r.Unsure)
				p.nothingLeft()
			})
		}
	})
}
