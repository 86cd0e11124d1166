package rebuild

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

// sealed is the record of a final window.
const sealed = `{"at":1700000000000000,"revision":3}`

// final makes the only window final on every shard, as revision 3.
func (p *place) final(t *testing.T) (name string, records func(shard int) (listing, record string)) {
	t.Helper()
	for shard := range p.live {
		key := p.keyOf(shard, "windows")
		for listed, text := range p.redis.HGetAll(t.Context(), key).Val() {
			l, err := ranking.ParseListing(listed, text)
			require.NoError(t, err)
			name, l.Final = listed, 3
			require.NoError(t, p.redis.HSet(t.Context(), key, name, l.Text()).Err())
			require.NoError(t, p.redis.HSet(t.Context(), p.keyOf(shard, "final"), name, sealed).Err())
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
				require.Contains(t, listing, `"final":3,`, "shard %d", shard)
				require.Equal(t, sealed, record)
				continue
			}
			require.NotContains(t, listing, "final")
			require.Regexp(t, `^{"at":1700000000000000,"reopened":[0-9]{13},"revision":3,"why":"rebuilt"}$`, record)
			records, err := p.live[shard].SealRecords(t.Context(), []string{name})
			require.NoError(t, err)
			one := records[name]
			require.Equal(t, int64(4), one.Next(), "the next seal is another revision")
		}
		p.nothingLeft()

		// The listing is lost with all seals in it. The next seals have other revisions, too.
		p.final(t)
		require.NoError(t, p.redis.Del(t.Context(), p.key("windows")).Err())
		_, err = p.job.Run(t.Context())
		require.NoError(t, err)
		_, record := on(p.at)
		require.Regexp(t, `^{"at":1700000000000000,"reopened":[0-9]{13},"revision":3,"why":"rebuilt"}$`, record)

		// A final window that is not lost is kept.
		p.final(t)
		_, err = p.job.Run(t.Context())
		require.NoError(t, err)
		for shard := range p.live {
			listing, _ := on(shard)
			require.Contains(t, listing, `"final":3,`, "shard %d", shard)
		}
	})
}

// Events that a window missed while it was final are in the rebuilt window. Its record no longer names
// them, and keeps the time until which the window is not sealed.
func TestARebuildBringsInWhatHadPassedAFinalWindowBy(t *testing.T) {
	onShards(t, func(t *testing.T, of ledger.Shards) {
		p := newPlaceOn(t, newPlace(t, of, 0).redis, of, 500, 40)
		was := p.boards()
		name, on := p.final(t)
		for shard := range p.live {
			listing, _ := on(shard)
			require.NoError(t, p.redis.HSet(t.Context(), p.keyOf(shard, "windows"), name, strings.Replace(listing, `"final":3,`, "", 1)).Err())
			require.NoError(t, p.redis.HSet(t.Context(), p.keyOf(shard, "final"), name, `{"at":1700000000000000,"passed":[[15,16],[1700000000000000,1700000000000001]],"reopened":8,"revision":3,"why":"case 9"}`).Err())
		}
		_, err := p.job.Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, was, p.boards())
		for shard := range p.live {
			_, record := on(shard)
			require.JSONEq(t, `{"at":1700000000000000,"reopened":8,"revision":3,"why":"case 9"}`, record)
		}
	})
}
