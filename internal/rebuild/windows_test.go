package rebuild

// Boards by the thousand: whoever may publish makes them.

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/testenv"
)

// counted counts calls, those of a pipeline as one.
type counted struct{ calls atomic.Int64 }

func (*counted) DialHook(next redis.DialHook) redis.DialHook { return next }
func (c *counted) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.calls.Add(1)
		return next(ctx, cmd)
	}
}
func (c *counted) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.calls.Add(1)
		return next(ctx, cmds)
	}
}

// manyKeys is why a test needs a real Redis: with each command a miniredis looks through
// all keys for those that expire.
const manyKeys = "thousands of keys"

func TestWhatARebuildAsksOfRedisGrowsFarSlowerThanItsWindows(t *testing.T) {
	const windows = 4000
	p := manyBoards(t, testenv.RealRedis(t, manyKeys).Client(t), windows)
	was := p.boards()
	require.Len(t, was, windows)
	c := new(counted)
	p.redis.AddHook(c)
	r, err := p.job.Run(t.Context())
	require.NoError(t, err)
	require.True(t, r.Swapped)
	require.Less(t, c.calls.Load(), int64(windows/20))
	require.Equal(t, was, p.boards())
	p.nothingLeft()
}

// As after max_windows was lowered: what is there stays, and is rebuilt.
func TestARebuildOfMoreWindowsThanMayBeReplacesThemAll(t *testing.T) {
	const windows, most = 800, 500
	p := manyBoards(t, testenv.Redis(t).Client(t), windows)
	was := p.boards()
	require.Len(t, was, windows)
	p.config.MaxWindows = most
	p.job.Live = ranking.New(p.config)
	r, err := p.job.Run(t.Context())
	require.NoError(t, err)
	require.True(t, r.Swapped)
	require.Equal(t, was, p.boards())
	for _, w := range r.Plan.Windows {
		require.Equal(t, ranking.Replaced, w.Fate, w.Why)
	}
	p.nothingLeft()
}

// interrupted is a rebuild that is told to stop as its first keys are removed.
type interrupted struct {
	stop    func()
	removed atomic.Int64
}

func (*interrupted) DialHook(next redis.DialHook) redis.DialHook { return next }
func (i *interrupted) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		i.see(cmd)
		return next(ctx, cmd)
	}
}
func (i *interrupted) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			i.see(cmd)
		}
		return next(ctx, cmds)
	}
}
func (i *interrupted) see(cmd redis.Cmder) {
	if cmd.Name() == "unlink" {
		i.removed.Add(1)
		i.stop()
	}
}

func TestARemovalHearsASignalAtOnceAndLetsOthersBegin(t *testing.T) {
	const windows = 4000
	p := manyBoards(t, testenv.RealRedis(t, manyKeys).Client(t), windows)
	was := p.boards()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	i := &interrupted{stop: stop}
	p.redis.AddHook(i)
	p.job.DryRun = true
	_, err := p.job.Run(ctx)
	require.NoError(t, err, "what it was asked for is done")
	require.Less(t, i.removed.Load(), int64(windows/2))
	require.Len(t, p.notes, 1)
	require.Contains(t, p.notes[0], "expires by itself")
	require.Equal(t, was, p.boards())
	require.Zero(t, p.redis.Exists(t.Context(), p.key("hold"), p.key("~rebuild")).Val())
	for _, key := range p.redis.Keys(t.Context(), p.key("~*")).Val() {
		require.Positive(t, p.redis.PTTL(t.Context(), key).Val(), key)
	}
	second, err := p.job.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, windows, second.Plan.Replaces())
}
