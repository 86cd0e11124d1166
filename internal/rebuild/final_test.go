package rebuild

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

// final has the one window be final on every shard, as revision 3.
func (p *place) final(t *testing.T) (name string, records func(shard int) (listing, record string)) {
	t.Helper()
	for shard := range p.live {
		key := p.keyOf(shard, "windows")
		for listed, text := range p.redis.HGetAll(t.Context(), key).Val() {
			words := strings.Fields(ranking.OpenListing(text))
			name = listed
			require.NoError(t, p.redis.HSet(t.Context(), key, name, strings.Join([]string{words[0], words[1], "=3", words[2]}, " ")).Err())
			require.NoError(t, p.redis.HSet(t.Context(), p.keyOf(shard, "final"), name, "3 1700000000000000").Err())
		}
	}
	return name, func(shard int) (listing, record string) {
		return p.redis.HGet(t.Context(), p.keyOf(shard, "windows"), name).Val(), p.redis.HGet(t.Context(), p.keyOf(shard, "final"), name).Val()
	}
}

func TestAFinalWindowThatWasLostIsRebuiltAsAnOpenOne(t *testing.T) {
	onShards(t, func(t *testing.T, of ledger.Shards) {
		p := newPlaceOn(t, newPlace(t, of, 0).redis, of, 500, 40)
		was := p.boards()
		name, on := p.final(t)
		require.NoError(t, p.redis.Del(t.Context(), p.key(name)).Err())
		r, err := p.job.Run(t.Context())
		require.NoError(t, err)
		require.True(t, r.Swapped)
		require.Equal(t, was, p.boards())
		for shard := range p.live {
			listing, record := on(shard)
			if shard != p.at {
				require.Equal(t, int64(3), ranking.ListedRevision(listing), "shard %d: %s", shard, listing)
				require.Equal(t, "3 1700000000000000", record)
				continue
			}
			require.Zero(t, ranking.ListedRevision(listing), listing)
			require.Regexp(t, `^3 1700000000000000 reopened [0-9]{13} rebuilt$`, record)
			records, err := p.live[shard].SealRecords(t.Context(), []string{name})
			require.NoError(t, err)
			one := records[name]
			require.Equal(t, int64(4), one.Next(), "the next seal is another revision")
		}
		p.nothingLeft()

		// The listing is lost, with all seals in it: the next ones are other revisions, too.
		p.final(t)
		require.NoError(t, p.redis.Del(t.Context(), p.key("windows")).Err())
		_, err = p.job.Run(t.Context())
		require.NoError(t, err)
		_, record := on(p.at)
		require.Regexp(t, `^3 1700000000000000 reopened [0-9]{13} rebuilt$`, record)

		// What isn't lost is left alone.
		p.final(t)
		_, err = p.job.Run(t.Context())
		require.NoError(t, err)
		for shard := range p.live {
			listing, _ := on(shard)
			require.Equal(t, int64(3), ranking.ListedRevision(listing), "shard %d: %s", shard, listing)
		}
	})
}

// What passed a window by while it was final is in what a rebuild puts in its place: the record says so no
// more, and until when nothing is to seal it stays.
func TestARebuildBringsInWhatHadPassedAFinalWindowBy(t *testing.T) {
	onShards(t, func(t *testing.T, of ledger.Shards) {
		p := newPlaceOn(t, newPlace(t, of, 0).redis, of, 500, 40)
		was := p.boards()
		name, on := p.final(t)
		for shard := range p.live {
			listing, _ := on(shard)
			require.NoError(t, p.redis.HSet(t.Context(), p.keyOf(shard, "windows"), name, strings.Replace(listing, "=3 ", "", 1)).Err())
			require.NoError(t, p.redis.HSet(t.Context(), p.keyOf(shard, "final"), name, "3 1700000000000000 15-16,1700000000000000-1700000000000001 reopened 8 case 9").Err())
		}
		_, err := p.job.Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, was, p.boards())
		for shard := range p.live {
			_, record := on(shard)
			require.Equal(t, "3 1700000000000000 reopened 8 case 9", record)
		}
	})
}
