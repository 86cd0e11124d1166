package reshard

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

func TestAReshardTakesNamesAlong(t *testing.T) {
	for _, n := range [][2]ledger.Shards{{1, 5}, {5, 1}, {2, 3}} {
		t.Run(fmt.Sprintf("%d to %d", n[0], n[1]), func(t *testing.T) {
			f := fixed(t, n[0], codec.Readable)
			f.add(t, rand.New(rand.NewPCG(1, 1)), "global", 600)
			old := f.of(n[0]).Shards()
			want := ranking.Board{}
			for i := range 600 {
				id := fmt.Sprint("m", i)
				want.Standings = append(want.Standings, ranking.Standing{Member: id, Name: "called " + id})
				home := old[n[0].Of(xxhash.Sum64String(id))]
				require.NoError(t, home.MergeNames(t.Context(), []string{id, "5 9999999999999 called " + id}))
			}
			_, err := f.job(t, n[1]).Run(t.Context())
			require.NoError(t, err)
			got := ranking.Board{}
			for _, st := range want.Standings {
				got.Standings = append(got.Standings, ranking.Standing{Member: st.Member})
			}
			require.NoError(t, f.of(n[1]).Name(t.Context(), &got))
			require.Equal(t, want, got)
			for _, s := range old {
				require.Zero(t, f.client.Exists(t.Context(), s.Keys().Names()).Val())
			}
			for _, s := range f.of(n[1]).Shards() {
				require.Negative(t, f.client.PTTL(t.Context(), s.Keys().Names()).Val(), "they stay")
			}
		})
	}
}
