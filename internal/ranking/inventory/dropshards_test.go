package inventory

// Tests drops of several shards.

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/rankingtest"
	"github.com/standings/standings/test/testenv"
)

// sharded returns fixtures for all shards of a prefix; all but the first have members.
func sharded(t *testing.T, prefix string, shards ledger.Shards) []*fixture {
	t.Helper()
	client := testenv.RedisClient(t)
	var all []*fixture
	for i := range int(shards) {
		f := newFixture(t, client, prefix)
		f.Store = f.StoreOf(t, func(c *ranking.Config) { c.Shard, c.Shards = i, shards })
		f.Begin(t)
		eu := f.Windows("eu")
		var members []ledger.Member
		for m := 0; len(members) < 5 && i > 0; m++ {
			if id := fmt.Sprint("m", m); shards.Of(xxhash.Sum64String(id)) == i {
				members = append(members, f.Member(id, 1))
			}
		}
		f.Piece.Expected, f.Piece.Next = ledger.At(f.Next), ledger.At(f.Next+10)
		f.Piece.Groups = []ledger.Group{{Windows: append([]int{0, 1, 2}, eu...), Members: members}}
		if len(members) == 0 {
			f.Piece.Groups = nil
		}
		f.MustApply(t)
		all = append(all, f)
	}
	return all
}

func TestADropRemovesEveryNumberOfShards(t *testing.T) {
	prefix := testenv.Prefix(t)
	four, two, one := sharded(t, prefix, 4), sharded(t, prefix, 2), sharded(t, prefix, 1)
	for _, key := range []string{":{3.1}:odd", ":{1.77}:4:ledger", ":{9.0}:4:windows"} { // tags that no shard has
		require.NoError(t, one[0].Client.Set(t.Context(), prefix+key, "x", time.Minute).Err())
	}
	// Keys of other prefixes that begin alike, or that aren't keys of standings.
	others := []string{prefix, prefix + ":x", prefix + ":{x.1}:2:y", prefix + ":{x}:y", "x" + prefix + ":{0}:ledger", prefix + "2:{0}:ledger"}
	for _, key := range others {
		require.NoError(t, one[0].Client.Set(t.Context(), key, "x", time.Minute).Err())
	}
	for _, shards := range [][]*fixture{four, two, one} {
		v := viewOf(t, shards[0])
		found, err := v.Survey(t.Context())
		require.NoError(t, err)
		require.Len(t, found.stood, 7)
		require.Equal(t, []int{6, 4 * 5 * 6}, []int{found.Windows, int(found.Members)})
		require.Equal(t, []string{"eu", "global"}, found.Boards)
		for _, f := range shards {
			moves, err := v.Moves(t.Context(), found)
			require.NoError(t, err)
			require.False(t, moves)
			f.Piece.Groups = nil
			f.MustApply(t)
			moves, err = v.Moves(t.Context(), found)
			require.NoError(t, err)
			require.True(t, moves, "shard %d", f.Store.Addr())
			found, err = v.Survey(t.Context())
			require.NoError(t, err)
		}
	}
	v := viewOf(t, four[0])
	require.NoError(t, four[0].Client.Set(t.Context(), four[3].Store.Keys().Rebuild(), "{}", time.Minute).Err())
	four[0].Client.HSet(t.Context(), four[3].Store.Keys().Workers(), "events/3", fmt.Sprintf(`{"owner":"host-1","at":%q}`, time.Now().Format(time.RFC3339Nano)))
	found, err := v.Survey(t.Context())
	require.NoError(t, err)
	require.True(t, found.Rebuilding)
	require.Equal(t, map[string]string{"events/3": "host-1"}, found.Used)
	names := make([]string, len(found.keys))
	for i, key := range found.keys {
		names[i] = nameOf(key)
	}
	require.True(t, slices.IsSortedFunc(names, func(a, b string) int { return removedAt(a) - removedAt(b) }), "%v", names)
	last := 0
	require.NoError(t, v.Drop(t.Context(), found, 0, func(done int) { last = done }))
	require.Equal(t, found.Keys, last)
	require.Len(t, rankingtest.Contents(t, four[0].Client, prefix), len(others)-1)
	require.Equal(t, int64(len(others)), four[0].Client.Exists(t.Context(), others...).Val())
}

// removedAt returns a key's place in the order that drop.go documents.
func removedAt(name string) int {
	if at := slices.Index([]string{"ledger", "schema"}, name); at >= 0 {
		return at
	}
	if name == "windows" {
		return 3
	}
	return 2
}

// After any interruption of a drop, no shard counts on top of the remains, and a shard that still has
// boards halts every worker that starts.
func TestWhatIsLeftOfADropOfShardsIsNoBoardToAnybody(t *testing.T) {
	found, err := viewOf(t, sharded(t, testenv.Prefix(t), 3)[0]).Survey(t.Context())
	require.NoError(t, err)
	for stop := 3; stop < found.Keys; stop++ {
		all := sharded(t, testenv.Prefix(t)+fmt.Sprint(stop), 3)
		v := viewOf(t, all[0])
		found, err := v.Survey(t.Context())
		require.NoError(t, err)
		found.keys = found.keys[:stop]
		require.NoError(t, v.Drop(t.Context(), found, 0, nil))
		orphaned := 0
		for _, f := range all {
			listed := f.Client.HLen(t.Context(), f.Store.Keys().Windows()).Val()
			f.Answers(t, ledger.Answer{Outcome: ledger.Moved})
			if listed == 0 {
				continue
			}
			begun, err := f.Store.Begin(t.Context(), []ledger.StartPosition{beginning(3, "", 0, nil)})
			require.NoError(t, err)
			require.Equal(t, ledger.Orphaned, begun, "after %v", found.keys)
			orphaned++
		}
		if stop >= 6 { // the schemas are gone too
			_, err := all[0].Top(t.Context(), "global", all[0].Window(0))
			require.ErrorAs(t, err, new(*ranking.SchemaError))
		}
		require.Positive(t, orphaned, "after %v", found.keys)
		v = viewOf(t, all[0])
		found, err = v.Survey(t.Context())
		require.NoError(t, err)
		require.NoError(t, v.Drop(t.Context(), found, 0, nil))
		require.Empty(t, rankingtest.Contents(t, all[0].Client, all[0].Prefix))
	}
}

func TestBoardsAreDroppedFromEveryShard(t *testing.T) {
	all := sharded(t, testenv.Prefix(t), 4)
	v := viewOf(t, all[0])
	eu := func(board string) bool { return board == "eu" }
	found, err := v.SurveyBoards(t.Context(), eu)
	require.NoError(t, err)
	require.Equal(t, []int{3, 9, 45}, []int{found.Windows, found.Keys, int(found.Members)}, "the first has none")

	lock := all[2].Store.Keys().Rebuild()
	require.NoError(t, all[0].Client.Set(t.Context(), lock, "{}", time.Minute).Err())
	_, err = v.DropBoards(t.Context(), found, 0, nil)
	require.ErrorIs(t, err, ranking.ErrRebuilding)
	all[0].Del(t, lock)

	// A second drop finishes, and counts each window once.
	found, err = v.SurveyBoards(t.Context(), eu)
	require.NoError(t, err)
	last := 0
	dropped, err := v.DropBoards(t.Context(), found, 0, func(done int) { last = done })
	require.NoError(t, err)
	require.Equal(t, int64(3), dropped)
	require.Equal(t, found.Keys, last)
	for i, f := range all {
		for key := range rankingtest.Contents(t, f.Client, f.Prefix) {
			require.NotContains(t, key, ":eu:")
		}
		kept, listed := f.Client.HLen(t.Context(), f.Store.Keys().Dropped()).Val(), f.Client.HLen(t.Context(), f.Store.Keys().Windows()).Val()
		require.Equal(t, []int64{int64(min(i, 1) * 3), int64(min(i, 1) * 3)}, []int64{kept, listed})
	}
	found, err = v.SurveyBoards(t.Context(), eu)
	require.NoError(t, err)
	require.Zero(t, found.Keys)
}

// shardOf and nameOf return what Keys wrote.
func TestAKeyIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prefix := rapid.StringMatching(`[A-Za-z0-9._-]{1,20}`).Draw(t, "prefix")
		of := ledger.Shards(rapid.IntRange(1, ledger.MaxShards).Draw(t, "shards"))
		shard := rapid.IntRange(0, int(of)-1).Draw(t, "shard")
		name := rapid.SampledFrom([]string{"ledger", "~rebuild", "global:weekly:2026-W47", "4:weekly:2026-W47", "~id:4:weekly:x"}).Draw(t, "name")
		key := ranking.KeysOf(prefix, shard, of).Listed(name)
		require.Equal(t, name, nameOf(key))
		i, n, ok := shardOf(key)
		require.True(t, ok)
		require.Equal(t, []int{shard, int(of)}, []int{i, int(n)})
		require.True(t, strings.HasPrefix(key, ranking.KeysOf(prefix, i, n).Listed("")))
	})
	for _, key := range []string{"lb:{0.0}:1:ledger", "lb:{3.1}:3:ledger", "lb:{0.1}:257:x", "lb:{1}:ledger", "lb:{0.1}:ledger", "lb:{x}:ledger", "lb"} {
		_, _, ok := shardOf(key)
		require.False(t, ok, key)
	}
}
