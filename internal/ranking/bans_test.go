package ranking

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/redisconn"
	"github.com/standings/standings/test/testenv"
)

// sideOf returns which of a window's two sets has a member.
func (f *fixture) sideOf(t *testing.T, w *ledger.Window, member string) string {
	t.Helper()
	shown, hidden := f.store.keys.Both(w.Listing())
	isShown := f.client.ZScore(t.Context(), shown, member).Err() == nil
	isHidden := f.client.ZScore(t.Context(), hidden, member).Err() == nil
	require.False(t, isShown && isHidden, "%s is in both sets of %s", member, w.Listing())
	switch {
	case isShown:
		return "shown"
	case isHidden:
		return "hidden"
	}
	return "nowhere"
}

func TestABanThatDiesBeforeItHasSetAnExpirySetsItWhenItIsRepeated(t *testing.T) {
	f, server := private(t)
	b := Ban{Member: membersOf(f.store, 1)[0]}
	f.add(t, f.member(b.Member, 10))
	lacking := f.storeOf(t, func(c *Config) { c.Client = f.as(t, server, "~*", "+@all", "-pexpireat") })
	require.True(t, redisconn.IsMissingRight(lacking.Ban(t.Context(), b)))
	require.NoError(t, f.store.Ban(t.Context(), b))
	for _, w := range f.piece.Windows {
		require.Equal(t, "hidden", f.sideOf(t, &w, b.Member))
		want := time.UnixMilli(w.End + retention.Milliseconds() + day)
		left := f.client.PTTL(t.Context(), f.store.keys.Hidden(w.Listing())).Val()
		require.WithinDuration(t, want, time.Now().Add(left), time.Minute)
	}
}

func TestTheBansOfAMemberAreThoseOfABoardAndOfAll(t *testing.T) {
	f := newFixture(t, testenv.RedisClient(t), testenv.Prefix(t))
	f.begin(t)
	members := membersOf(f.store, 2)
	ann, bob := members[0], members[1]
	of := func(board, member string) []Ban {
		all, err := f.store.BansOf(t.Context(), board, member)
		require.NoError(t, err)
		return all
	}
	require.Empty(t, of("eu", ann))
	for _, b := range []Ban{{Member: ann}, {Board: "eu", Member: ann, Erased: true}, {Board: "us", Member: ann}} {
		require.NoError(t, f.store.Ban(t.Context(), b))
	}
	require.Equal(t, []Ban{{Member: ann}, {Board: "eu", Member: ann, Erased: true}}, of("eu", ann))
	require.Equal(t, []Ban{{Member: ann}}, of("global", ann))
	require.Empty(t, of("eu", bob))
}

// A rebuild compares the version of the bans with the one that it took, so it must notice a half-finished
// unban.
func TestAnEndOfABanThatDiesMidwayHasChangedTheVersionOrNothing(t *testing.T) {
	for _, command := range []string{"hset", "hdel"} {
		t.Run(command, func(t *testing.T) {
			f, server := private(t)
			f.mustApply(t)
			b := Ban{Member: membersOf(f.store, 1)[0]}
			require.NoError(t, f.store.Ban(t.Context(), b))
			require.NoError(t, f.store.Ban(t.Context(), Ban{Member: b.Member, Board: "eu"})) // another ban remains
			mark := "showing half"
			require.NoError(t, f.store.place(t.Context(), "unban", b, mark, "", nil))
			before := f.client.HGetAll(t.Context(), f.store.keys.Banned()).Val()
			require.Equal(t, mark, before[":"+b.Member])

			lacking := f.storeOf(t, func(c *Config) { c.Client = f.as(t, server, "~*", "+@all", "-"+command) })
			require.True(t, redisconn.IsMissingRight(lacking.place(t.Context(), "end", b, mark, "", nil)))
			after := f.client.HGetAll(t.Context(), f.store.keys.Banned()).Val()
			if _, there := after[":"+b.Member]; !there {
				require.NotEqual(t, before["version"], after["version"], "the ban is gone, and nothing says so")
			}
			require.NoError(t, f.store.place(t.Context(), "end", b, mark, "", nil))
			after = f.client.HGetAll(t.Context(), f.store.keys.Banned()).Val()
			require.NotContains(t, after, ":"+b.Member)
			require.NotEqual(t, before["version"], after["version"])
		})
	}
}

// Redis goes back while a ban is running: it has the mark, and the standings are shown again.
func TestABanThatRedisHasLostInPartDoesNotEnd(t *testing.T) {
	f := newFixture(t, testenv.RedisClient(t), testenv.Prefix(t))
	f.begin(t)
	b := Ban{Member: membersOf(f.store, 1)[0]}
	f.piece.Groups = []ledger.Group{{Windows: []int{0, 1, 2}, Members: []ledger.Member{f.member(b.Member, 5)}}}
	f.mustApply(t)
	const mark = "hiding x"
	require.NoError(t, f.store.place(t.Context(), "ban", b, counted(mark, 0), "hidden", nil))
	k := f.store.keys
	banned, listings := f.client.HGetAll(t.Context(), k.Banned()).Val(), f.client.HGetAll(t.Context(), k.Windows()).Val()
	calls, err := f.store.goThrough(t.Context(), b, mark)
	require.NoError(t, err)
	for _, w := range f.piece.Windows {
		require.Equal(t, "hidden", f.sideOf(t, &w, b.Member))
		shown, hidden := k.Both(w.Listing())
		require.NoError(t, f.client.Rename(t.Context(), hidden, shown).Err())
	}
	require.NoError(t, f.client.HSet(t.Context(), k.Banned(), banned).Err())
	require.NoError(t, f.client.HSet(t.Context(), k.Windows(), listings).Err())

	require.NoError(t, f.store.place(t.Context(), "end", b, counted(mark, calls), "hidden", nil))
	require.Equal(t, counted(mark, 0), f.client.HGet(t.Context(), k.Banned(), ":"+b.Member).Val(), "it is under way")
	require.NoError(t, f.store.Ban(t.Context(), b))
	require.Equal(t, "hidden", f.client.HGet(t.Context(), k.Banned(), ":"+b.Member).Val())
	for _, w := range f.piece.Windows {
		require.Equal(t, "hidden", f.sideOf(t, &w, b.Member))
	}
}
