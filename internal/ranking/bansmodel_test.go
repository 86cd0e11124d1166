package ranking

// Compares bans with a model without hidden sets, which has a standing per member and window, and the
// banned members. The test interrupts a Ban or an Unban after any of its calls. Another caller repeats or
// reverses it later, or never.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cespare/xxhash/v2"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/lua"
	"github.com/standings/standings/test/testenv"
)

var errCut = errors.New("the caller is gone")

// cut makes calls of ban.lua fail once left calls are done. It keeps the first failed call, which arrives
// later, out of order.
type cut struct {
	left int
	late []any
	ends bool // late ends a ban after all windows
	of   int  // the number of the Ban or Unban that late belongs to
	now  int
}

func (c *cut) DialHook(next redis.DialHook) redis.DialHook { return next }
func (c *cut) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		args := cmd.Args()
		if len(args) < 2 || args[1] != lua.Ban.SHA && args[1] != lua.Ban.Source {
			return next(ctx, cmd)
		}
		if c.left--; c.left < 0 {
			if what := args[head+args[2].(int)+1]; what == "go" || what == "end" {
				c.late, c.ends, c.of = slices.Clone(args), what == "end", c.now
			}
			cmd.SetErr(errCut)
			return errCut
		}
		return next(ctx, cmd)
	}
}
func (c *cut) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// bansModel is the content of a shard, except in which set a standing is.
type bansModel struct {
	sums    map[string]map[string]int64 // by window, by member
	banned  map[string]string           // by <board>:<member>: hidden or erased
	pending map[string]bool             // started, and interrupted
	last    map[string]int              // the number of the last Ban or Unban
	dropped map[string]bool             // windows that must not be opened again
}

func (m *bansModel) is(board, member string) string {
	all, own := m.banned[":"+member], m.banned[board+":"+member]
	switch {
	case all == "erased" || own == "erased":
		return "erased"
	case all == "hidden" || own == "hidden":
		return "hidden"
	}
	return "shown"
}

// membersOf returns n member ids of the fixture's shard.
func membersOf(s *Store, n int) (all []string) {
	for i := 0; len(all) < n; i++ {
		if id := strconv.Itoa(i); s.shards.Of(xxhash.Sum64String(id)) == s.shard {
			all = append(all, id)
		}
	}
	return all
}

func TestBansLoseNothingAndCountNothingTwice(t *testing.T) {
	testenv.SlowEmbedded(t)
	testBans(t, testenv.RedisClient(t), testenv.Prefix(t))
}

func testBans(t *testing.T, client *redis.Client, prefix string) {
	t.Helper()
	outer := t
	cutting := redis.NewClient(client.Options())
	t.Cleanup(func() { _ = cutting.Close() })
	hook := new(cut)
	cutting.AddHook(hook)
	require.NoError(t, client.ScriptLoad(t.Context(), lua.Ban.Source).Err()) // so that each script is one call
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		hook.late = nil
		f := newFixture(t, client, fmt.Sprint(prefix, n))
		f.use(t, rapid.SampledFrom(kinds).Draw(t, "layout"), 1000)
		f.begin(t)
		cutStore := f.storeOf(t, func(c *Config) {
			c.Client = cutting
			for p := range c.Periods {
				layout, err := codec.New(f.store.periods[string(p)].Layout.Kind, p.Length(), 1000)
				require.NoError(t, err)
				c.Periods[p] = Period{Layout: layout, Retention: retention}
			}
		})
		f.store.bannedAtOnce, cutStore.bannedAtOnce = 2, 2 // so that a ban takes several calls
		m := &bansModel{sums: map[string]map[string]int64{}, banned: map[string]string{}, pending: map[string]bool{}, last: map[string]int{}, dropped: map[string]bool{}}
		if rapid.IntRange(0, 3).Draw(t, "many") == 0 {
			m.others(t, f)
		}
		members := membersOf(f.store, 2)
		windows := f.newPiece().Windows
		for _, w := range f.newPiece().Windows {
			w.Board = "eu"
			windows = append(windows, w)
		}
		f.piece.Windows = windows
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			b := Ban{Board: rapid.SampledFrom([]string{"", "global", "eu"}).Draw(t, "board"), Member: rapid.SampledFrom(members).Draw(t, "member")}
			switch rapid.SampledFrom([]string{"apply", "apply", "ban", "unban", "ban", "unban", "erase", "late", "retire", "drop", "wipe"}).Draw(t, "step") {
			case "late":
				if hook.late != nil {
					m.arrives(t, f, hook)
				}
			case "apply":
				m.apply(t, f, members)
			case "retire":
				m.retire(t, f, rapid.SampledFrom(windows).Draw(t, "window").Listing())
			case "drop":
				if rapid.IntRange(0, 2).Draw(t, "really") == 0 {
					m.drop(outer, f)
				}
			case "wipe":
				if rapid.IntRange(0, 2).Draw(t, "really") == 0 {
					m.wipe(t, f)
				}
			case "erase":
				b.Erased = rapid.IntRange(0, 3).Draw(t, "really") == 0
				fallthrough
			case "ban":
				m.ban(t, b, hook, func() error { return cutStore.Ban(t.Context(), b) })
			case "unban":
				m.unban(t, b, hook, func() error { return cutStore.Unban(t.Context(), b) })
			}
			m.holds(t, f, windows)
		}
		// A later caller completes what was interrupted.
		hook.left = 1 << 30
		if hook.late != nil {
			m.arrives(t, f, hook)
		}
		for field := range m.pending {
			board, member, _ := strings.Cut(field, ":")
			b := Ban{Board: board, Member: member, Erased: m.banned[field] == "erased"}
			if m.banned[field] == "" {
				require.NoError(t, f.store.Unban(t.Context(), b))
			} else {
				require.NoError(t, f.store.Ban(t.Context(), b))
			}
		}
		m.pending = nil
		m.holds(t, f, windows)
	})
}

// others adds more bans than a piece reads at once, of members who have no events.
func (m *bansModel) others(t *rapid.T, f *fixture) {
	fields := []any{"version", "others"}
	for i := range 501 {
		field := fmt.Sprintf("%s:other%d", []string{"", "global", "eu"}[i%3], i)
		fields = append(fields, field, "hidden")
		m.banned[field] = "hidden"
	}
	require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Banned(), fields...).Err())
}

// retire expires a window, with or without its remaining sets. It stays listed while one of its sets
// exists.
func (m *bansModel) retire(t *rapid.T, f *fixture, name string) {
	listing, err := f.client.HGet(t.Context(), f.store.keys.Windows(), name).Result()
	if errors.Is(err, redis.Nil) {
		return
	}
	require.NoError(t, err)
	was := listingOf(t, listing)
	was.Expires = 1000
	over := was.Text()
	require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Windows(), name, over).Err())
	shown, hidden := f.store.keys.Both(name)
	gone := rapid.Bool().Draw(t, "gone")
	if gone {
		require.NoError(t, f.client.Del(t.Context(), shown, hidden).Err())
		delete(m.sums, name)
	}
	n, err := f.store.Retire(t.Context())
	require.NoError(t, err)
	if gone {
		require.Equal(t, 1, n)
		return
	}
	require.Zero(t, n, "%s is retired, and its key is there", name)
	require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Windows(), name, listing).Err())
}

// drop drops the board eu. Nothing of it remains, hidden or not, and nothing is restored.
func (m *bansModel) drop(t *testing.T, f *fixture) {
	t.Helper()
	for name := range f.client.HGetAll(t.Context(), f.store.keys.Windows()).Val() {
		if strings.HasPrefix(name, "eu:") {
			m.dropped[name] = true
			delete(m.sums, name)
		}
	}
	k := f.store.keys
	keys, args := []string{k.Windows(), k.Dropped(), k.Rebuild()}, []any{}
	for _, name := range slices.Sorted(maps.Keys(m.dropped)) {
		shown, hidden := k.Both(name)
		keys, args = append(keys, shown, hidden), append(args, name)
	}
	if len(args) > 0 {
		_, err := f.store.Call(t.Context(), lua.DropBoards, keys, args...)
		require.NoError(t, err)
	}
	for name := range m.dropped {
		shown, hidden := f.store.keys.Both(name)
		require.Zero(t, f.client.Exists(t.Context(), shown, hidden).Val(), name)
	}
}

// wipe removes everything from Redis. The bans are then restored, before or after the ledger starts.
func (m *bansModel) wipe(t *rapid.T, f *fixture) {
	keys, err := f.client.Keys(t.Context(), f.prefix+":*").Result()
	require.NoError(t, err)
	require.NoError(t, f.client.Del(t.Context(), keys...).Err())
	clear(m.sums)
	clear(m.pending)
	clear(m.last)
	clear(m.dropped)
	maps.DeleteFunc(m.banned, func(field, _ string) bool { return strings.Contains(field, ":other") })
	first := rapid.Bool().Draw(t, "begun first")
	if first {
		f.begin(t)
	}
	for field, state := range m.banned {
		board, member, _ := strings.Cut(field, ":")
		require.NoError(t, f.store.Ban(t.Context(), Ban{Board: board, Member: member, Erased: state == "erased"}))
	}
	if !first {
		f.begin(t)
	}
}

// arrives executes the late call. It completes its Ban or Unban if no other has started since.
func (m *bansModel) arrives(t *rapid.T, f *fixture, hook *cut) {
	require.NoError(t, f.client.Do(t.Context(), hook.late...).Err())
	if field := hook.late[head+hook.late[2].(int)+2].(string); hook.ends && m.last[field] == hook.of {
		board, member, _ := strings.Cut(field, ":")
		m.through(Ban{Board: board, Member: member}, field, true, true)
	}
}

// cutOr interrupts a Ban or Unban after a drawn number of calls. It returns whether the member was marked,
// and whether all is done.
func cutOr(t *rapid.T, hook *cut, do func() error) (marked, done bool) {
	calls := rapid.IntRange(0, 8).Draw(t, "calls")
	hook.left = calls
	hook.now++
	err := do()
	if err != nil {
		require.ErrorIs(t, err, errCut)
	}
	return calls > 0, err == nil
}

func (m *bansModel) ban(t *rapid.T, b Ban, hook *cut, do func() error) {
	field := b.Board + ":" + b.Member
	marked, done := cutOr(t, hook, do)
	wanted := map[bool]string{false: "hidden", true: "erased"}[b.Erased]
	if was := m.banned[field]; !marked || was == wanted && !m.pending[field] || was == "erased" && wanted == "hidden" {
		return // nothing was started
	}
	m.banned[field], m.last[field] = wanted, hook.now
	m.through(b, field, marked, done)
}

func (m *bansModel) unban(t *rapid.T, b Ban, hook *cut, do func() error) {
	field := b.Board + ":" + b.Member
	if m.banned[field] == "erased" {
		hook.left = 1 << 30
		require.ErrorIs(t, do(), ErrErased)
		return
	}
	marked, done := cutOr(t, hook, do)
	if marked && m.banned[field] != "" {
		delete(m.banned, field)
		m.pending[field] = true
	}
	if m.pending[field] && marked {
		m.last[field] = hook.now
	}
	m.through(b, field, m.pending[field], done)
}

// through records whether all windows are done. Then nothing of an erased member remains.
func (m *bansModel) through(b Ban, field string, marked, done bool) {
	if done {
		delete(m.pending, field)
	} else if marked {
		m.pending[field] = true
	}
	if done && m.banned[field] == "erased" {
		for name, sums := range m.sums {
			if board, _, _ := strings.Cut(name, ":"); b.Board == "" || board == b.Board {
				delete(sums, b.Member)
			}
		}
	}
}

func (m *bansModel) apply(t *rapid.T, f *fixture, members []string) {
	in := rapid.SliceOfNDistinct(rapid.IntRange(0, len(f.piece.Windows)-1), 1, len(f.piece.Windows), rapid.ID).Draw(t, "windows")
	g := ledger.Group{Windows: make([]int, 0, len(in))}
	piece := f.piece
	piece.Windows = nil
	for i, n := range in {
		piece.Windows = append(piece.Windows, f.piece.Windows[n])
		g.Windows = append(g.Windows, i)
	}
	for _, id := range rapid.SliceOfNDistinct(rapid.SampledFrom(members), 1, len(members), rapid.ID).Draw(t, "members") {
		g.Members = append(g.Members, f.member(id, rapid.Int64Range(-20, 20).Draw(t, "points")))
	}
	piece.Groups = []ledger.Group{g}
	piece.Expected, piece.Next = ledger.At(f.next), ledger.At(f.next+10)
	a, _, err := f.store.Apply(t.Context(), &piece)
	require.NoError(t, err)
	require.Equal(t, ledger.Answer{Outcome: ledger.Applied}, a)
	f.next += 10
	for _, w := range piece.Windows {
		if m.dropped[w.Listing()] {
			continue
		}
		for _, member := range g.Members {
			if m.is(w.Board, string(member.ID)) == "erased" {
				continue
			}
			if m.sums[w.Listing()] == nil {
				m.sums[w.Listing()] = map[string]int64{}
			}
			m.sums[w.Listing()][string(member.ID)] += member.Points
		}
	}
}

// holds requires that every standing is in one of its window's two sets with everything that was counted,
// and in the right one unless a ban is pending; and that both sets expire together.
func (m *bansModel) holds(t *rapid.T, f *fixture, windows []ledger.Window) {
	listing := f.client.HGetAll(t.Context(), f.store.keys.Windows()).Val()
	for _, w := range windows {
		name := w.Listing()
		got := map[string]int64{}
		shown, hidden := f.store.keys.Both(name)
		for _, key := range []string{shown, hidden} {
			rows := f.client.ZRangeWithScores(t.Context(), key, 0, -1).Val()
			for _, z := range rows {
				member := z.Member.(string)
				if member == "" {
					require.Equal(t, hidden, key)
					continue
				}
				require.NotContains(t, got, member, "%s is in both sets of %s", member, name)
				points, _, err := f.store.periods[w.Period].Layout.Decode(z.Score)
				require.NoError(t, err)
				got[member] = points
				is := m.is(w.Board, member)
				if m.pending[":"+member] || m.pending[w.Board+":"+member] {
					continue
				}
				require.Equal(t, is == "hidden", key == hidden, "%s is %s in %s", member, is, key)
			}
			if len(rows) > 0 {
				require.Contains(t, listing, name)
				f.expiresAt(t, key, w.End+retention.Milliseconds()+day)
			}
		}
		want := maps.Clone(m.sums[name])
		for member := range got {
			if m.is(w.Board, member) == "erased" && (m.pending[":"+member] || m.pending[w.Board+":"+member]) {
				delete(got, member) // not yet removed
			}
		}
		for member := range want {
			if m.is(w.Board, member) == "erased" {
				delete(want, member)
			}
		}
		if len(want) == 0 {
			want = map[string]int64{}
		}
		require.Equal(t, want, got, name)
	}
	lost, err := f.store.Lost(t.Context())
	require.NoError(t, err)
	require.Empty(t, lost)
	all, err := f.store.Banned(t.Context())
	require.NoError(t, err)
	held := map[string]bool{}
	for _, b := range all {
		field := b.Board + ":" + b.Member
		held[field] = true
		require.Equal(t, m.pending[field], b.Pending, field)
		if !b.Pending {
			require.Equal(t, map[bool]string{false: "hidden", true: "erased"}[b.Erased], m.banned[field])
		}
	}
	for field := range m.banned {
		require.True(t, held[field], field)
	}
}
