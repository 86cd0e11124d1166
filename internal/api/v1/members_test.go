package v1

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/testenv"
)

func TestAMemberIsSeenWithWhatIsMissingToTheNextRank(t *testing.T) {
	kinds(t, func(t *testing.T, of ledger.Shards, kind codec.Kind) {
		f := newFixture(t, of, kind)
		all := f.crowd(80)
		for _, style := range []string{ordinal, competition, modified} {
			for _, i := range []int{0, 1, 40, 79} {
				m := read[memberAnswer](f, w("global")+"/members/"+all[i].Member, "ranks", style)
				f.equal(all[i:i+1], all, style, []standing{m.Standing})
				require.InDelta(t, math.Floor(float64(79-i)*10000/80)/100, *m.Percentile, 1e-9)
				if i == 0 {
					require.Nil(t, m.Above)
					continue
				}
				f.equal(all[i-1:i], all, style, []standing{m.Above.standing})
				require.Equal(t, all[i-1].Points-all[i].Points+1, *m.Above.PointsToNextRank)
			}
		}
		nobody := read[memberAnswer](f, w("global")+"/members/nobody")
		require.Equal(t, standing{Member: "nobody"}, nobody.Standing)
		require.Nil(t, nobody.Percentile)
		require.Nil(t, nobody.Above)
		require.Equal(t, standing{Member: "u1"}, read[memberAnswer](f, w("empty")+"/members/u1").Standing)
	})
}

func TestAMembersSurroundingsAreFullAtTheEnds(t *testing.T) {
	kinds(t, func(t *testing.T, of ledger.Shards, kind codec.Kind) {
		f := newFixture(t, of, kind)
		all := f.crowd(40)
		for i := range all {
			from := min(max(0, i-3), 40-7)
			a := read[aroundAnswer](f, w("global")+"/around", "member", all[i].Member, "n", "3", "ranks", modified)
			f.equal(all[from:from+7], all, modified, a.Standings)
		}
		f.equal(all, all, ordinal, read[aroundAnswer](f, w("global")+"/around", "member", all[5].Member, "n", "500").Standings)
		f.equal(all[:7], all, ordinal, read[aroundAnswer](f, w("global")+"/around", "member", "nobody", "n", "3", "if_missing", "top").Standings)
		f.equal(all[33:], all, competition, read[aroundAnswer](f, w("global")+"/around", "member", "nobody", "n", "3", "if_missing", "bottom", "ranks", competition).Standings)
	})
}

func (f *fixture) lookUp(board, body, query string) said {
	f.t.Helper()
	r := httptest.NewRequest(http.MethodPost, w(board)+"/members/lookup"+query, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	return ask(f.t, f, r)
}

func TestFriendsAreRankedAmongThemselvesAndInTheBoard(t *testing.T) {
	kinds(t, func(t *testing.T, of ledger.Shards, kind codec.Kind) {
		f := newFixture(t, of, kind)
		all := f.crowd(90)
		var ids []string
		var friends []ranking.Standing
		for i := 4; i < 90; i += 7 {
			friends, ids = append(friends, all[i]), append(ids, all[i].Member)
		}
		slices.Sort(ids)
		ids = append(ids, "nobody", ids[0], "no one") // one id twice
		body, err := json.Marshal(map[string]any{"members": ids})
		require.NoError(t, err)
		for _, style := range []string{ordinal, competition, modified} {
			a := f.lookUp("global", string(body), "?ranks="+style)
			require.Equal(t, http.StatusOK, a.status, "%s", a.body)
			got := decode[lookupAnswer](t, a.body)
			f.equal(friends, all, style, got.Standings)
			require.Equal(t, []string{"nobody", "no one"}, got.Absent)
			for i, s := range got.Standings {
				require.Equal(t, rankOf(friends, i, style), *s.Place)
			}
		}
		require.Equal(t, []string{"a", "b"}, decode[lookupAnswer](t, f.lookUp("empty", `{"members":["a","b"]}`, "").body).Absent)
	})
}

// longestCall records the largest number of arguments of a script call.
type longestCall struct{ arguments atomic.Int64 }

func (h *longestCall) see(cmd redis.Cmder) {
	if strings.HasPrefix(cmd.Name(), "eval") {
		h.arguments.Store(max(h.arguments.Load(), int64(len(cmd.Args()))))
	}
}
func (h *longestCall) DialHook(next redis.DialHook) redis.DialHook { return next }
func (h *longestCall) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { h.see(cmd); return next(ctx, cmd) }
}
func (h *longestCall) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, all []redis.Cmder) error {
		for _, cmd := range all {
			h.see(cmd)
		}
		return next(ctx, all)
	}
}

// When one call looked up a thousand members with their ties, it blocked Redis for 11 to 19 ms.
func TestALargeLookupHoldsRedisForShortTimes(t *testing.T) {
	testenv.SlowEmbedded(t)
	for _, of := range []ledger.Shards{1, 3} {
		f := newFixture(t, of, codec.Readable)
		all := f.crowd(1000)
		ids := make([]string, len(all))
		for i := range all {
			ids[i] = all[(i*7)%len(all)].Member
		}
		body, err := json.Marshal(map[string]any{"members": ids})
		require.NoError(t, err)
		h := new(longestCall)
		f.client.AddHook(h)
		for _, style := range []string{ordinal, modified} {
			a := f.lookUp("global", string(body), "?ranks="+style)
			require.Equal(t, http.StatusOK, a.status, "%s", a.body)
			f.equal(all, all, style, decode[lookupAnswer](t, a.body).Standings)
		}
		require.Less(t, h.arguments.Load(), int64(900), "of 200 members at most")
	}
}

func TestALookupThatIsNoneIsRefused(t *testing.T) {
	f := newFixture(t, 1, codec.Readable)
	for body, says := range map[string]string{
		``: "EOF", `[]`: "cannot unmarshal", `{"members":[]}`: "1 to 1000", `{"members":["a"],"x":1}`: "unknown field", `{"members":["a"]} {}`: "a single JSON value",
		`{"members":[""]}`: "1 to 256 bytes", `{"members":["` + strings.Repeat("x", 257) + `"]}`: "257", `{"members":[1]}`: "cannot unmarshal",
		`{"members":["x"` + strings.Repeat(`,"y"`, 1000) + `]}`: "at most 1000 ids", `{"members":null}`: "1 to 1000", `{"members":{}}`: "cannot unmarshal",
	} {
		a := f.lookUp("global", body, "")
		require.Equal(t, http.StatusBadRequest, a.status, body)
		require.Contains(t, decode[problem](t, a.body).Detail, says)
	}
	a := f.lookUp("global", `{"members":["`+strings.Repeat("x", longestBody)+`"]}`, "")
	require.Equal(t, http.StatusRequestEntityTooLarge, a.status)
}

func TestPointsHaveTheRankThatTheyWouldHaveNow(t *testing.T) {
	kinds(t, func(t *testing.T, of ledger.Shards, kind codec.Kind) {
		f := newFixture(t, of, kind)
		all := f.crowd(70)
		for points := int64(-8); points < 15; points++ {
			more, atLeast := int64(0), int64(0)
			for _, st := range all {
				if st.Points > points {
					more++
				}
				if st.Points >= points {
					atLeast++
				}
			}
			r := read[rankAnswer](f, w("global")+"/rank", "points", fmt.Sprint(points), "n", "2")
			require.Equal(t, []int64{atLeast + 1, atLeast, more}, []int64{r.Rank, r.AtOrAbove, r.Above})
			from := min(max(0, int(atLeast)-2), 70-4)
			f.equal(all[from:from+len(r.Standings)], all, ordinal, r.Standings)
		}
		for percent, rank := range map[string]int64{"1": 1, "5": 4, "50": 35, "100": 70, "0.01": 1} {
			p := read[percentAnswer](f, w("global")+"/rank", "percent", percent)
			require.Equal(t, rank, p.Rank)
			f.equal(all[rank-1:rank], all, ordinal, []standing{*p.Standing})
		}
		require.Zero(t, read[percentAnswer](f, w("empty")+"/rank", "percent", "5").Rank)
	})
}

func TestOneMemberOnSeveralBoards(t *testing.T) {
	f := newFixture(t, 1, codec.Readable)
	all := f.crowd(30)
	f.put("arena", f.standing("arena", all[3].Member, 0, 7, 1))
	b := read[boardsAnswer](f, "/v1/members/"+all[3].Member, "boards", "global,arena,none")
	require.Len(t, b.Standings, 3)
	require.Equal(t, int64(4), *b.Standings[0].Standing.Rank)
	require.JSONEq(t, `{"stage":7,"revives":1}`, string(b.Standings[1].Standing.Fields))
	require.Nil(t, b.Standings[2].Standing.Rank)
	require.False(t, b.Standings[2].Window.HasEvents)
}
