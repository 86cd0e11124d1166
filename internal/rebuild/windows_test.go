package rebuild

// Thousands of boards, which every producer can create.

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/test/testenv"
)

// manyKeys is the reason that a test requires a real Redis: miniredis searches all keys for expired ones on
// each command.
const manyKeys = "thousands of keys"

func TestWhatARebuildAsksOfRedisGrowsFarSlowerThanItsWindows(t *testing.T) {
	const windows = 4000
	p := manyBoards(t, testenv.RealRedis(t, manyKeys).Client(t), windows)
	was := p.boards()
	require.Len(t, was, windows)
	var calls atomic.Int64
	p.redis.AddHook(watched(func(...redis.Cmder) { calls.Add(1) }))
	r, err := p.job.Run(t.Context())
	require.NoError(t, err)
	require.True(t, r.Swapped)
	require.Less(t, calls.Load(), int64(windows/20))
	require.Equal(t, was, p.boards())
	p.nothingLeft()
}

func TestWhatIsSentUnderTheHoldDoesNotGrowWithWindows(t *testing.T) {
	const windows = 4000
	p := manyBoards(t, testenv.RealRedis(t, manyKeys).Client(t), windows)
	p.job.Compare = true // so that it holds ingestion
	var mu sync.Mutex    // the lease is renewed concurrently
	var held, over bool
	var sent []string // commands from the hold until its end
	p.redis.AddHook(watched(func(cmds ...redis.Cmder) {
		mu.Lock()
		defer mu.Unlock()
		for _, cmd := range cmds {
			a := cmd.Args()
			if calls(cmd, 2, p.key("hold")) {
				held = true
			} else if held && !over {
				sent = append(sent, cmd.Name())
				over = len(a) > 3 && a[3] == p.key("hold") // the swap
			}
		}
	}))
	r, err := p.job.Run(t.Context())
	require.NoError(t, err)
	require.True(t, r.Swapped)
	require.True(t, over)
	require.Less(t, len(sent), 12, "%v", sent)
	require.NotContains(t, sent, "hscan")
	require.Equal(t, windows, r.Plan.Replaces())
	p.nothingLeft()
}

func TestARemovalHearsASignalAtOnceAndLetsOthersBegin(t *testing.T) {
	const windows = 4000
	p := manyBoards(t, testenv.RealRedis(t, manyKeys).Client(t), windows)
	was := p.boards()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var removed atomic.Int64
	p.redis.AddHook(watched(func(cmds ...redis.Cmder) {
		for _, cmd := range cmds {
			if cmd.Name() == "unlink" {
				removed.Add(1)
				stop()
			}
		}
	}))
	p.job.DryRun = true
	_, err := p.job.Run(ctx)
	require.NoError(t, err, "what it was asked for is done")
	require.Less(t, removed.Load(), int64(windows/2))
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
