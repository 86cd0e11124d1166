package main

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/standings/standings/internal/bans"
	"github.com/standings/standings/internal/bans/hiding"
	"github.com/standings/standings/test/testenv"
)

// Banned members are hidden. If both prefixes have the ban, the member makes no difference; if one has it,
// the member exists only under the other.
func TestBansAreHonoured(t *testing.T) {
	for _, shards := range []string{"3", "2"} { // compared by one script, and by member ids
		prefix := testenv.Prefix(t) + shards
		environ := written(t, prefix, map[string]int64{"ann": 5, "bob": 7, "eve": 1}, "STANDINGS_REDIS_SHARDS=3")
		here := hiding.In(boardsOf(t, environ))
		there := hiding.In(boardsOf(t, written(t, prefix+"-b", map[string]int64{"ann": 5, "bob": 9, "eve": 1}, "STANDINGS_REDIS_SHARDS="+shards)))
		bob := bans.Key{Member: "bob"}
		for _, c := range []struct {
			change       func() error
			code         int
			onlyA, onlyB int
		}{
			{func() error {
				return errors.Join(here.Ban(t.Context(), bans.Ban{Key: bob}), there.Ban(t.Context(), bans.Ban{Key: bob}))
			}, 0, 0, 0},
			{func() error { return there.Unban(t.Context(), bob) }, 1, 0, 1},
			{func() error {
				return errors.Join(here.Unban(t.Context(), bob), there.Ban(t.Context(), bans.Ban{Key: bob}))
			}, 1, 1, 0},
		} {
			if err := c.change(); err != nil {
				t.Fatal(err)
			}
			code, out, _ := execute(t, environ, "diff", "--with", prefix+"-b", "--json")
			var r diffReport
			if err := json.Unmarshal([]byte(out), &r); err != nil || len(r.Windows) != 1 {
				t.Fatalf("exit code %d, %v: %s", code, err, out)
			}
			w := r.Windows[0]
			if code != c.code || r.Differ != c.onlyA+c.onlyB || !w.Exact {
				t.Errorf("%s shards: exit code %d: %s", shards, code, out)
			}
			for _, st := range r.Standings {
				if st.Member != "bob" || (st.A == nil) != (c.onlyA == 0) || (st.B == nil) != (c.onlyB == 0) {
					t.Errorf("%s shards: %+v", shards, st)
				}
			}
		}
	}
}
