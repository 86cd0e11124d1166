package top

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/test/clitest"
)

// inShards returns a board of 30 members in several shards; m29 has the most points.
func inShards(t *testing.T, shards int) *written {
	t.Helper()
	s := clitest.StandingsIn(t, shards, 0, 0)
	var members []ledger.Member
	for i := range 30 {
		members = append(members, clitest.Member(fmt.Sprint("m", i), int64(i), "2100-03-09T08:15:30.123Z"))
	}
	s.Add(t, "global", members...)
	return newWritten(t, s)
}

func TestTheLedgerOfEachShardIsShownWhereItIsAskedFor(t *testing.T) {
	w := inShards(t, 3)
	w.Reader.Client.HSet(t.Context(), w.Shards[2].Keys().Ledger(), "points/1", "7")
	for _, command := range [][]string{{"top", "global", "weekly"}, {"rank", "global", "weekly", "m7"}} {
		code, stdout, stderr := execute(t, w.Environ, append(command, "--window", "2100-W10", "--json", "--shards")...)
		var r report
		if err := json.Unmarshal([]byte(stdout), &r); code != 0 || err != nil {
			t.Fatal(code, err, stderr)
		}
		var ledgers []string
		for _, s := range r.Shards {
			ledgers = append(ledgers, fmt.Sprint(s.Shard, s.Ledger))
			if s.AsOf == "" {
				t.Error("a shard isn't read at any time")
			}
		}
		if got := strings.Join(ledgers, " "); got != "0 map[points/0:1 points/1:0] 1 map[points/0:1 points/1:0] 2 map[points/0:1 points/1:7]" {
			t.Error(got)
		}
	}
}

func TestABoardThatOneShardHasLostIsAnErrorThatNamesIt(t *testing.T) {
	w := inShards(t, 3)
	w.Reader.Client.Del(t.Context(), w.Shards[1].Keys().Listed("global:weekly:2100-W10"))
	code, stdout, stderr := execute(t, w.Environ, "top", "global", "weekly", "--window", "2100-W10", "--json")
	on := fmt.Sprint("shard 1 of 3 on ", w.Shards[1].Addr())
	if want := "is lost (board_lost) in " + on + ": it is listed, but its key is missing"; code != 1 || !strings.Contains(stderr, want) {
		t.Errorf("code %d, %s", code, stderr)
	}
	if !strings.Contains(stdout, fmt.Sprintf(`"lost_shard": %q`, on)) {
		t.Error(stdout)
	}
}
