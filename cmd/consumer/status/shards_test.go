package status

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/test/clitest"
)

func TestStatusHasALineForEachShard(t *testing.T) {
	_, kafkaThere := clitest.FakeKafka(t)
	w := clitest.StandingsIn(t, 4, 0, 0)
	w.Add(t, "global", clitest.Member("m1", 1, ""))
	set := func(shard int, field, at string) {
		t.Helper()
		require.NoError(t, w.Reader.Client.HSet(t.Context(), w.Shards[shard].Keys().Ledger(), field, at).Err())
	}
	for shard := range 4 {
		set(shard, "points/0", "1480")
	}
	set(1, "points/0", "120..480@4000000000000000")
	set(2, "points/1", "torn:0")
	gone := w.Shards[3].Keys()
	w.Reader.Client.Del(t.Context(), gone.Ledger(), gone.Schema(), gone.Origin(), gone.Windows())
	environ := append(kafkaThere, w.Environ...)
	code, stdout, stderr := clitest.Execute(t, Command, environ, "status")
	at := w.Store.Addr()
	master := func(text string) string { return strings.ReplaceAll(text, "MASTER---------", at) }
	windows := make([]int, 4)
	for i, s := range w.Shards {
		n, err := s.Windows(t.Context())
		require.NoError(t, err)
		windows[i] = int(n)
	}
	want := master(fmt.Sprintf(`
SHARD  MASTER---------  WINDOWS  BEHIND  POSITIONS THAT ARE BEHIND
    0  MASTER---------        %d       0
    1  MASTER---------        %d   1,360  points/0 120..480@4000…
    2  MASTER---------        %d       0  points/1 torn:0
    3  MASTER---------        %d   1,480  it is empty, while other shards are not
`, windows[0], windows[1], windows[2], windows[3]))
	want = strings.Replace(want, at, "MASTER"+strings.Repeat(" ", len(at)-6), 1)
	// The exit code is 1 because no consumer processes the other partitions of the topic.
	if code != 1 || stderr != "" || !strings.Contains(stdout, want) {
		t.Errorf("code %d %s\n%s\nwant%s", code, stderr, stdout, want)
	}
	code, stdout, _ = clitest.Execute(t, Command, environ, "status", "--json")
	s := asStatus(t, stdout)
	if code != 1 || len(s.Shards) != 4 || *s.Shards[1].Behind != 1360 || *s.Shards[1].Master != at || s.Shards[1].Ledger["points/1"] != "0" || s.Shards[3].Problem == nil {
		t.Errorf("%s", stdout)
	}
}

// If one of several shards cannot be read, it is named and the others are shown.
func TestAShardThatCannotBeReadIsNamedAndTheOthersAreShown(t *testing.T) {
	_, kafkaThere := clitest.FakeKafka(t)
	w := clitest.StandingsIn(t, 4, 0)
	for _, shard := range []int{1, 2} {
		key := w.Shards[shard].Keys().Ledger()
		w.Reader.Client.Del(t.Context(), key)
		w.Reader.Client.Set(t.Context(), key, "what is this", 0)
	}
	code, stdout, stderr := clitest.Execute(t, Command, append(kafkaThere, w.Environ...), "status", "--json")
	s := asStatus(t, stdout)
	if code != 1 || len(s.Problems) != 1 || !strings.HasPrefix(s.Problems[0], fmt.Sprintf("shards 1, 2 of 4 on %s: ", w.Store.Addr())) || !strings.Contains(stderr, "WRONGTYPE") {
		t.Errorf("code %d %s\n%s", code, stderr, stdout)
	}
	if len(s.Shards) != 4 || s.Shards[0].Ledger["points/0"] != "0" || s.Shards[1].Ledger != nil || s.Shards[2].Problem == nil || s.Shards[3].Problem != nil {
		t.Errorf("%s", stdout)
	}
}
