package v1

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/reading"
)

// kinds runs a test for each number of shards and layout.
func kinds(t *testing.T, do func(t *testing.T, of ledger.Shards, kind codec.Kind)) {
	t.Helper()
	for _, of := range []ledger.Shards{1, 3} {
		for _, kind := range []codec.Kind{codec.Readable, codec.Wide} {
			t.Run(fmt.Sprintf("%d shards, %s", of, kind), func(t *testing.T) { do(t, of, kind) })
		}
	}
}

// crowd writes a board with many equal points, and returns its model.
func (f *fixture) crowd(members int) []ranking.Standing {
	luck := rand.New(rand.NewPCG(1, uint64(members)))
	var all []ranking.Standing
	for i := range members {
		all = append(all, f.standing("global", fmt.Sprintf("u%d", i), luck.Int64N(5), luck.Int64N(17)-5))
	}
	f.put("global", all...)
	return ranked(all)
}

// rankOf returns a member's rank by a style, computed by counting.
func rankOf(all []ranking.Standing, of int, style string) int64 {
	more, atLeast, distinct := int64(0), int64(0), map[int64]bool{}
	for _, st := range all {
		if st.Points > all[of].Points {
			more++
			distinct[st.Points] = true
		}
		if st.Points >= all[of].Points {
			atLeast++
		}
	}
	return map[string]int64{ordinal: int64(of + 1), competition: more + 1, modified: atLeast, dense: int64(len(distinct) + 1)}[style]
}

func (f *fixture) equal(want []ranking.Standing, all []ranking.Standing, style string, got []standing) {
	f.t.Helper()
	require.Len(f.t, got, len(want))
	for i, st := range want {
		at := slices.IndexFunc(all, func(o ranking.Standing) bool { return o.Member == st.Member })
		require.Equal(f.t, st.Member, got[i].Member)
		require.Equal(f.t, st.Points, *got[i].Points)
		require.Equal(f.t, rankOf(all, at, style), *got[i].Rank, "%s rank of %s", style, st.Member)
		require.Equal(f.t, timeMS(st.ReachedAt.UnixMilli()), *got[i].ReachedAt)
	}
}

func TestAPageIsThatOfOneSortedListByEveryStyle(t *testing.T) {
	kinds(t, func(t *testing.T, of ledger.Shards, kind codec.Kind) {
		f := newFixture(t, of, kind)
		all := f.crowd(120)
		for _, style := range []string{ordinal, competition, modified} {
			for _, from := range []int{0, 1, 50, 113, 119, 120, 500} {
				p := read[standingsAnswer](f, w("global")+"/standings", "limit", "7", "offset", fmt.Sprint(from), "ranks", style)
				f.equal(all[min(from, 120):min(from+7, 120)], all, style, p.Standings)
				require.Equal(t, int64(120), p.Window.Members)
				require.Equal(t, "current", stateBut(p.Status))
				require.Equal(t, map[string]string{"points/0": "10"}, p.Status.Ledger)
				require.Equal(t, from+7 < 120, p.Next != nil)
			}
			bottom := read[standingsAnswer](f, w("global")+"/standings", "limit", "9", "from", "bottom", "offset", "2", "ranks", style)
			f.equal(all[109:118], all, style, bottom.Standings)
		}
	})
}

// stateBut returns the state, ignoring that no consumer reports its position.
func stateBut(s status) string {
	if s.State == "stalled" && slices.Equal(s.Stalled, []reading.StalledPartition{{Partition: "points/0", Reason: "no_consumer"}}) {
		return "current"
	}
	return s.State
}

func TestPagesByCursorNeitherRepeatNorSkip(t *testing.T) {
	kinds(t, func(t *testing.T, of ledger.Shards, kind codec.Kind) {
		f := newFixture(t, of, kind)
		all := f.crowd(100)
		for _, style := range []string{ordinal, competition, dense} {
			var got []standing
			query := []string{"limit", "9", "ranks", style}
			for pages := 0; ; pages++ {
				require.Less(t, pages, 20)
				p := read[standingsAnswer](f, w("global")+"/standings", query...)
				got = append(got, p.Standings...)
				if p.Next == nil {
					break
				}
				query = []string{"limit", "9", "ranks", style, "cursor", *p.Next}
			}
			f.equal(all, all, style, got)
		}
	})
}

func TestARangeOfPointsHasBothEnds(t *testing.T) {
	kinds(t, func(t *testing.T, of ledger.Shards, kind codec.Kind) {
		f := newFixture(t, of, kind)
		all := f.crowd(120)
		for _, c := range []struct{ least, most string }{{"-2", "3"}, {"0", ""}, {"", "0"}, {"11", "12"}, {"12", "99999999999"}, {"-9223372036854775808", "-5"}} {
			var query []string
			low, high := int64(-1<<62), int64(1<<62)
			if c.least != "" {
				query = append(query, "min_points", c.least)
				_, err := fmt.Sscan(c.least, &low)
				require.NoError(t, err)
			}
			if c.most != "" {
				query = append(query, "max_points", c.most)
				_, err := fmt.Sscan(c.most, &high)
				require.NoError(t, err)
			}
			in := slices.DeleteFunc(slices.Clone(all), func(st ranking.Standing) bool { return st.Points < low || st.Points > high })
			p := read[standingsAnswer](f, w("global")+"/standings", append(query, "limit", "20", "offset", "3")...)
			f.equal(in[min(3, len(in)):min(23, len(in))], all, ordinal, p.Standings)
			require.Equal(t, int64(len(in)), *p.InRange)
			var paged []standing
			for after := []string(nil); ; {
				p := read[standingsAnswer](f, w("global")+"/standings", slices.Concat(query, []string{"limit", "7"}, after)...)
				paged = append(paged, p.Standings...)
				if p.Next == nil || len(p.Standings) == 0 {
					break
				}
				after = []string{"cursor", *p.Next}
			}
			f.equal(in, all, ordinal, paged)
		}
	})
}

func TestABoardWithFieldsShowsThemInOrder(t *testing.T) {
	kinds(t, func(t *testing.T, of ledger.Shards, kind codec.Kind) {
		f := newFixture(t, of, kind)
		f.put("arena", f.standing("arena", "a", 3, 42, 3), f.standing("arena", "b", 1, 42, 0), f.standing("arena", "c", 2, 40, 0), f.standing("arena", "d", 4, 42, 3))
		p := read[standingsAnswer](f, w("arena")+"/standings", "ranks", competition)
		require.Equal(t, []string{"stage", "revives"}, p.Window.Fields)
		var got []string
		for _, s := range p.Standings {
			require.Nil(t, s.Points)
			got = append(got, fmt.Sprint(s.Member, *s.Rank, string(s.Fields)))
		}
		require.Equal(t, []string{`b1{"stage":42,"revives":0}`, `a2{"stage":42,"revives":3}`, `d2{"stage":42,"revives":3}`, `c4{"stage":40,"revives":0}`}, got)

		r := read[rankAnswer](f, w("arena")+"/rank", "fields", "stage:42,revives:3")
		require.Equal(t, []int64{4, 3, 1}, []int64{r.Rank, r.AtOrAbove, r.Above})
		for _, query := range [][]string{{"points", "3"}, {"fields", "stage:42"}, {"fields", "stage:42,revives:x"}, {"fields", "stage:42,stage:42"}, {"fields", "stage:1000,revives:0"}} {
			require.Equal(t, http.StatusBadRequest, f.get(w("arena")+"/rank", query...).status, query)
		}
		require.Equal(t, http.StatusBadRequest, f.get(w("arena")+"/standings", "min_points", "3").status)
	})
}

func TestWhatIsNoRequestIsRefusedWithWhatWouldBeRight(t *testing.T) {
	f := newFixture(t, 1, codec.Readable)
	f.crowd(30)
	next := *read[standingsAnswer](f, w("global")+"/standings").Next
	f.put("other", f.standing("global", "u1", 0, 1))
	for _, c := range []struct {
		path      string
		query     []string
		status    int
		parameter string
		says      string
	}{
		{w("global") + "/standings", []string{"limt", "3"}, 400, "limt", `Unknown parameter "limt". /v1/boards/{board}/periods/{period}/windows/{window}/standings takes limit, offset`},
		{w("global") + "/standings", []string{"limit", "0"}, 400, "limit", `limit must be a whole number from 1 to 1000, not "0"`},
		{w("global") + "/standings", []string{"limit", "1001"}, 400, "limit", "from 1 to 1000"},
		{w("global") + "/standings", []string{"limit", ""}, 400, "limit", "from 1 to 1000"},
		{w("global") + "/standings", []string{"limit", "3", "limit", "4"}, 400, "limit", "2 times"},
		{w("global") + "/standings", []string{"offset", "-1"}, 400, "offset", "from 0"},
		{w("global") + "/standings", []string{"from", "middle"}, 400, "from", `from must be one of top, bottom, not "middle"`},
		{w("global") + "/standings", []string{"ranks", "olympic"}, 400, "ranks", "competition"},
		{w("global") + "/standings", []string{"ranks", "dense", "offset", "3"}, 400, "ranks", "dense excludes offset"},
		{w("global") + "/standings", []string{"ranks", "dense", "cursor", next}, 400, "ranks", "next_cursor of a dense page"},
		{w("global") + "/standings", []string{"cursor", "x"}, 400, "cursor", "cursor must be the next_cursor of a page of this board and period. Omit it for the first page"},
		{w("other") + "/standings", []string{"cursor", next}, 400, "cursor", "first page"},
		{w("global") + "/standings", []string{"cursor", next, "offset", "1"}, 400, "cursor", "excludes offset"},
		{w("global") + "/standings", []string{"min_points", "3", "max_points", "2"}, 400, "min_points", "exceeds"},
		{w("global") + "/standings", []string{"min_offset", "points"}, 400, "min_offset", "topic/partition@offset"},
		{w("global") + "/standings", []string{"wait_ms", "10001"}, 400, "wait_ms", "10000"},
		{w("global") + "/around", nil, 400, "member", "is required"},
		{w("global") + "/around", []string{"member", "nobody"}, 404, "member", "if_missing=top"},
		{w("global") + "/around", []string{"member", strings.Repeat("x", 257)}, 400, "member", "256"},
		{w("global") + "/members/u1", []string{"shadow", "true", "ranks", "modified"}, 400, "shadow", "ordinal"},
		{w("global") + "/rank", nil, 400, "points", "Give exactly one of points, fields and percent"},
		{w("global") + "/rank", []string{"points", "3", "percent", "4"}, 400, "points", "one of"},
		{w("global") + "/rank", []string{"points", "1000001"}, 400, "points", "out of range for this board"},
		{w("global") + "/rank", []string{"percent", "101"}, 400, "percent", "100"},
		{w("global") + "/rank", []string{"percent", "NaN"}, 400, "percent", "100"},
		{w("global") + "/rank", []string{"fields", "stage:1"}, 400, "fields", "Use points"},
		{w("global") + "/export", []string{"format", "xml"}, 400, "format", "csv"},
		{w("a%20b"), nil, 404, "board", "isn't a board's name"},
		{"/v1/boards/global/periods/monthly/windows/current", nil, 404, "period", "no period"},
		{"/v1/boards/global/periods/hourly/windows", nil, 404, "period", "Board global has no period hourly"},
		{"/v1/boards/global/periods/weekly/windows/2026-W54", nil, 404, "window", "Unknown week 2026-W54. Use 2026-W01 to 2026-W53, current or previous"},
		{"/v1/members/u1", nil, 400, "boards", "is required"},
		{"/v1/members/u1", []string{"boards", strings.Repeat("b,", 40)}, 400, "boards", "50"},
		{"/v1/members/u1", []string{"boards", "global", "periods", "monthly"}, 404, "period", "monthly"},
		{"/v1/boards", []string{"limit", "x"}, 400, "limit", "1000"},
	} {
		a := f.get(c.path, c.query...)
		require.Equal(t, c.status, a.status, "%s %v: %s", c.path, c.query, a.body)
		require.Equal(t, "application/problem+json", a.header.Get("Content-Type"))
		p := decode[problem](t, a.body)
		require.Equal(t, c.parameter, p.Parameter, "%s %v: %s", c.path, c.query, a.body)
		require.Contains(t, p.Detail, c.says, "%s %v", c.path, c.query)
	}
	require.Equal(t, []string{"weekly"}, decode[problem](t, f.get("/v1/boards/global/periods/monthly/windows").body).There)
	require.Equal(t, http.StatusBadRequest, ask(t, f, httptest.NewRequest(http.MethodGet, w("global")+"?a=%zz", nil)).status)

	a := ask(t, f, httptest.NewRequest(http.MethodDelete, w("global"), nil))
	require.Equal(t, http.StatusMethodNotAllowed, a.status)
	require.Equal(t, "GET, HEAD, OPTIONS", a.header.Get("Allow"))
	require.Equal(t, http.StatusNotFound, f.get("/v2/boards").status)
}

// A member id may be any text: it must survive in a path, in a query and in an answer.
func TestAnIDMayBeAnything(t *testing.T) {
	f := newFixture(t, 3, codec.Readable)
	ids := []string{"a/b", "..%2f", "<script>alert(1)</script>", "a b+c?d=e&f#g", "\u202egnp.exe", "ü💩", "\x00\x01", `"quoted"\`, "//", "%"}
	var all []ranking.Standing
	for i, id := range ids {
		all = append(all, f.standing("global", id, 0, int64(i)))
	}
	f.put("global", all...)
	all = ranked(all)
	for i, st := range all {
		m := read[memberAnswer](f, w("global")+"/members/"+url.PathEscape(st.Member))
		require.Equal(t, st.Member, m.Standing.Member)
		require.Equal(t, int64(i+1), *m.Standing.Rank)
		around := read[aroundAnswer](f, w("global")+"/around", "member", st.Member, "n", "0")
		require.Equal(t, st.Member, around.Standings[0].Member)
	}
	f.equal(all, all, ordinal, read[standingsAnswer](f, w("global")+"/standings", "limit", "100").Standings)
}
