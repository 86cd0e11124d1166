package rebuild

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

// Redis loses the bans before the rebuild, or during it.
func TestBannedMembersStayHiddenIfRedisHasLostTheBans(t *testing.T) {
	for name, during := range map[string]bool{"before": false, "meanwhile": true} {
		t.Run(name, func(t *testing.T) {
			onShards(t, func(t *testing.T, of ledger.Shards) {
				p := newPlace(t, of, 40)
				bans := func(ctx context.Context) error {
					return ranking.BanEach(ctx, p.live, ranking.Ban{Member: "m3"}, (*ranking.Store).Ban)
				}
				require.NoError(t, bans(t.Context()))
				was := p.boards()
				lose := func() {
					for shard := range p.live {
						require.NoError(t, p.redis.Del(t.Context(), p.keyOf(shard, "banned")).Err())
					}
				}
				p.job.Bans = bans
				if during {
					p.job.Watch.Planned = func(*Plan) { lose() }
				} else {
					lose()
				}
				r, err := p.job.Run(t.Context())
				require.NoError(t, err)
				require.True(t, r.Swapped)
				require.Equal(t, was, p.boards(), "the member isn't among those who are shown")
				hidden := 0
				for shard := range p.live {
					for name := range p.redis.HGetAll(t.Context(), p.keyOf(shard, "windows")).Val() {
						hidden += int(p.redis.ZCard(t.Context(), p.keyOf(shard, name)+ranking.HiddenSuffix).Val())
					}
				}
				require.Equal(t, 1, hidden)
			})
		})
	}
}

func TestADryRunLeavesTheBansOfTheLiveBoards(t *testing.T) {
	p := newPlace(t, 1, 20)
	p.job.DryRun = true
	p.job.Bans = func(context.Context) error {
		t.Error("it changes the live boards")
		return nil
	}
	_, err := p.job.Run(t.Context())
	require.NoError(t, err)
}
