package top

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/clitest"
)

// rankOf returns a member's rank on a board from the JSON; 0 if the member is not shown.
func (w *written) rankOf(t *testing.T, board, member string, flags ...string) int64 {
	t.Helper()
	args := append([]string{"rank", board, "weekly", member, "--window", "2100-W10", "--json"}, flags...)
	code, stdout, stderr := execute(t, w.Environ, args...)
	var r report
	if err := json.Unmarshal([]byte(stdout), &r); code != 0 || err != nil || len(r.Standings) != 1 {
		t.Fatalf("%v: code %d, %v: %s%s", args, code, err, stdout, stderr)
	}
	if st := r.Standings[0]; st.Rank != nil {
		return *st.Rank
	}
	return 0
}

func TestABannedMemberSeesTheRankThatTheyWouldHave(t *testing.T) {
	for _, shards := range []int{1, 3} {
		w := inShards(t, shards)
		var equal []ledger.Member
		for i := range 30 {
			equal = append(equal, clitest.Member(fmt.Sprint("m", i), 7, "2100-03-09T08:15:30.123Z"))
		}
		w.Add(t, "eu", equal...)
		for _, board := range []string{"global", "eu"} {
			for _, member := range []string{"m0", "m7", "m9", "m29"} {
				was := w.rankOf(t, board, member)
				if with := w.rankOf(t, board, member, "--shadow"); with != was || was == 0 {
					t.Errorf("%d shards: %s %s, who isn't banned, has rank %d, with --shadow %d", shards, board, member, was, with)
				}
				ban := ranking.Ban{Board: board, Member: member}
				require.NoError(t, ranking.BanEach(t.Context(), w.Shards, ban, (*ranking.Store).Ban))
				if shown, shadow := w.rankOf(t, board, member), w.rankOf(t, board, member, "--shadow"); shown != 0 || shadow != was {
					t.Errorf("%d shards: %s %s is banned: rank %d, with --shadow %d, want none and %d", shards, board, member, shown, shadow, was)
				}
				require.NoError(t, ranking.BanEach(t.Context(), w.Shards, ban, (*ranking.Store).Unban))
			}
		}
		if rank := w.rankOf(t, "eu", "nobody", "--shadow"); rank != 0 {
			t.Errorf("%d shards: who never had an event has rank %d", shards, rank)
		}
	}
}

func TestAMemberWhoIsNotShownMayBeBannedWhereSomebodyCanBe(t *testing.T) {
	w := aBoard(t)
	ask := []string{"rank", "global", "weekly", "nobody", "--window", "2100-W10"}
	for setting, want := range map[string]bool{"": false, "STANDINGS_KAFKA_BANS_TOPIC=points.bans": true} {
		code, stdout, stderr := execute(t, append([]string{setting}, w.Environ...), ask...)
		if code != 0 || strings.Contains(stdout, "or they are banned") != want {
			t.Errorf("%q: code %d: %s%s", setting, code, stdout, stderr)
		}
	}
	if code, _, stderr := execute(t, w.Environ, append(ask, "--shadow", "--around", "2")...); code != 2 || !strings.Contains(stderr, "--shadow excludes --around") {
		t.Errorf("code %d: %s", code, stderr)
	}
}
