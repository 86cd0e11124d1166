package rebuild

// How a rebuild catches up with consumers that run meanwhile.

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/test/testenv"
)

// While the rebuild writes a piece the consumers write one of as many events, so that each round is as long
// as the one before; but they do not while they are held.
func TestConsumersThatAreAsFastAsTheRebuildAreHeldInTheEndAndTheBoardsAreSwapped(t *testing.T) {
	testenv.SlowEmbedded(t)
	onShards(t, func(t *testing.T, of ledger.Shards) {
		p := newPlace(t, of, 0)
		p.job.Compare = true // so that it holds ingestion
		p.publish(2000, 70)
		p.begin()
		consumer := p.consumer()
		to := func(at int64) {
			require.NoError(t, consumer.To(t.Context(), p.at, map[string]ledger.Position{topic + "/0": ledger.At(at)}))
		}
		at := int64(20)
		to(at)
		p.job.MaxHold, p.job.patience.outrun = 600*time.Millisecond, 3
		var rounds atomic.Int64
		p.redis.AddHook(hooked(func(ctx context.Context, cmd redis.Cmder, do redis.ProcessHook) error {
			a := cmd.Args()
			if len(a) < 5 || !has(cmd, topic+"/0") || !strings.HasPrefix(a[3].(string), p.key("~")) || !strings.HasSuffix(a[3].(string), "ledger") || a[2].(int) < 7 {
				return do(ctx, cmd)
			}
			time.Sleep(p.job.MaxHold * 2 / 3) // a piece of the shadow
			err := do(ctx, cmd)
			if p.redis.Exists(t.Context(), p.key("hold")).Val() == 0 && at < 2000 {
				rounds.Add(1)
				at += 10
				to(at)
			}
			return err
		}))
		ctx, stop := context.WithTimeout(t.Context(), within)
		defer stop()
		r, err := p.job.Run(ctx)
		require.NoError(t, err)
		require.True(t, r.Swapped)
		require.Greater(t, rounds.Load(), int64(2*3))
		require.Contains(t, strings.Join(p.notes, " "), "isn't close yet")
		require.Less(t, at, int64(2000), "the consumers never came to the log's end")
		require.Equal(t, ledger.At(at).String(), p.position(p.at))
		p.nothingLeft()
	})
}
