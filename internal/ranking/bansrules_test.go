package ranking

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/test/testenv"
)

// Bans on a board with another rule. A second board gets the same events and has no bans: the scores on the
// first, shown and hidden, must equal its scores to the bit.
func TestABannedMemberGoesOnByTheBoardsRule(t *testing.T) {
	testenv.SlowEmbedded(t)
	client := testenv.RedisClient(t)
	for _, text := range []string{"best(stage:999,revives:99:fewest)", "last(rating:9999)", "sum(gold:999,silver:999)", ""} {
		t.Run(text, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				banned, plain := newFixture(t, client, testenv.Prefix(t)), newFixture(t, client, testenv.Prefix(t))
				rule := banned.byRule(t, text)
				plain.byRule(t, text)
				banned.begin(t)
				plain.begin(t)
				members := membersOf(banned.store, 2)
				hidden := map[string]bool{}
				for range rapid.IntRange(1, 15).Draw(rt, "steps") {
					member := rapid.SampledFrom(members).Draw(rt, "member")
					b := Ban{Board: rapid.SampledFrom([]string{"", "global"}).Draw(rt, "board"), Member: member}
					switch rapid.SampledFrom([]string{"add", "add", "ban", "unban"}).Draw(rt, "step") {
					case "add":
						m := ledger.Member{ID: []byte(member), Points: rapid.Int64Range(1, 50).Draw(rt, "points"), Time: banned.now - rapid.Int64Range(0, 3_000_000).Draw(rt, "ago")}
						if rule != nil {
							tuple := codec.Tuple{rapid.Int64Range(0, 30).Draw(rt, "first")}
							if rule.Fields.Len() > 1 {
								tuple[1] = rapid.Int64Range(0, 30).Draw(rt, "second")
							}
							value := rule.Value(&tuple, m.Time)
							m.Points, m.Time = value.Packed, value.Time
						}
						banned.add(t, m)
						plain.add(t, m)
					case "ban":
						require.NoError(rt, banned.store.Ban(t.Context(), b))
						hidden[b.Board+":"+member] = true
					case "unban":
						require.NoError(rt, banned.store.Unban(t.Context(), b))
						delete(hidden, b.Board+":"+member)
					}
					for _, w := range banned.piece.Windows {
						shown, beside := banned.store.keys.Both(w.Listing())
						for _, member := range members {
							in, out := shown, beside
							if hidden[":"+member] || hidden["global:"+member] {
								in, out = out, in
							}
							want, wantErr := client.ZScore(t.Context(), plain.store.keys.Window(&w), member).Result()
							got, err := client.ZScore(t.Context(), in, member).Result()
							require.Equal(rt, wantErr, err)
							require.Equal(rt, math.Float64bits(want), math.Float64bits(got))
							require.Error(rt, client.ZScore(t.Context(), out, member).Err(), "%s is in %s, too", member, out)
						}
					}
				}
			})
		})
	}
}
