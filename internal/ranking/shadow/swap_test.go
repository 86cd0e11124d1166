package shadow

// Each refusal of swap.lua, when every other check passes: the refusal is named, and nothing is written.

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/rankingtest"
	"github.com/standings/standings/internal/redisconn"
)

func TestASwapComparesEverythingInTheCallThatWrites(t *testing.T) {
	moved := func(field, live, shadow string) error {
		return &MovedError{Field: field, Live: live, Shadow: shadow}
	}
	for name, c := range map[string]struct {
		spoil func(t *testing.T, f *fixture, r *Rebuild)
		want  error
	}{
		"the hold has lapsed":   {func(t *testing.T, f *fixture, r *Rebuild) { f.Del(t, r.live.Keys().Hold()) }, ErrUnheld},
		"the hold is another's": {func(t *testing.T, f *fixture, r *Rebuild) { f.text(t, r.live.Keys().Hold(), "other") }, ErrUnheld},
		"the lock has lapsed":   {func(t *testing.T, f *fixture, r *Rebuild) { f.Del(t, r.live.Keys().Rebuild()) }, ErrLost},
		"the lock is another's": {func(t *testing.T, f *fixture, r *Rebuild) { f.text(t, r.live.Keys().Rebuild(), "other") }, ErrLost},

		"the schema is another": {func(t *testing.T, f *fixture, r *Rebuild) { f.text(t, r.live.Keys().Schema(), "{}") }, &ranking.SchemaError{Found: "{}"}},
		"the schema is gone":    {func(t *testing.T, f *fixture, r *Rebuild) { f.Del(t, r.live.Keys().Schema()) }, &ranking.SchemaError{}},
		"the ledger is ahead":   {func(t *testing.T, f *fixture, r *Rebuild) { f.field(t, r.live, "events/3", "20") }, moved("events/3", "20", "10")},
		"the ledger is behind":  {func(t *testing.T, f *fixture, r *Rebuild) { f.field(t, r.live, "events/3", "9") }, moved("events/3", "9", "10")},
		"the ledger sweeps": {func(t *testing.T, f *fixture, r *Rebuild) { f.field(t, r.live, "events/3", "10..20@00000000000000ff") },
			moved("events/3", "10..20@00000000000000ff", "10")},
		"the ledger was torn meanwhile": {func(t *testing.T, f *fixture, r *Rebuild) { f.field(t, r.live, "events/3", "torn:10") }, moved("events/3", "torn:10", "10")},
		"the ledger is torn elsewhere":  {func(t *testing.T, f *fixture, r *Rebuild) { f.field(t, r.live, "events/3", "torn:9") }, moved("events/3", "torn:9", "10")},
		"the ledger has one more":       {func(t *testing.T, f *fixture, r *Rebuild) { f.field(t, r.live, "events/4", "0") }, moved("", "", "")},
		"the ledger has one other": {func(t *testing.T, f *fixture, r *Rebuild) {
			f.field(t, r.live, "events/4", "10")
			f.noField(t, r.live, "events/3")
		}, moved("events/3", "", "10")},
		"the shadow is behind":            {func(t *testing.T, f *fixture, r *Rebuild) { f.field(t, r.shadow, "events/3", "9") }, moved("events/3", "10", "9")},
		"the shadow is ahead":             {func(t *testing.T, f *fixture, r *Rebuild) { f.field(t, r.shadow, "events/3", "20") }, moved("events/3", "10", "20")},
		"the shadow is torn":              {func(t *testing.T, f *fixture, r *Rebuild) { f.field(t, r.shadow, "events/3", "torn:10") }, moved("events/3", "10", "torn:10")},
		"the shadow has one more":         {func(t *testing.T, f *fixture, r *Rebuild) { f.field(t, r.shadow, "events/4", "0") }, moved("", "", "")},
		"the shadow's ledger is gone":     {func(t *testing.T, f *fixture, r *Rebuild) { f.Del(t, r.shadow.Keys().Ledger()) }, moved("events/3", "10", "")},
		"the shadow's schema is gone":     {func(t *testing.T, f *fixture, r *Rebuild) { f.Del(t, r.shadow.Keys().Schema()) }, ErrLost},
		"the shadow has lost a board":     {func(t *testing.T, f *fixture, r *Rebuild) { f.Del(t, r.shadow.Keys().Window(&f.Piece.Windows[2])) }, ErrLost},
		"the shadow has lost its listing": {func(t *testing.T, f *fixture, r *Rebuild) { f.Del(t, r.shadow.Keys().Windows()) }, ErrLost},
		"the shadow lists one more": {func(t *testing.T, f *fixture, r *Rebuild) {
			f.list(t, r.shadow, "eu:weekly:x", `{"end":2,"expires":9999999999999,"start":1}`)
		}, ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			f, r := rebuilding(t)
			f.held(t, r)
			p, err := r.plan(t.Context(), Choice{})
			require.NoError(t, err)
			require.NoError(t, p.ready())
			listing := p.Windows[1].listing
			p.Windows[1].listing = ""
			f.Unchanged(t, func() {
				require.ErrorIs(t, r.swap(t.Context(), p, ""), ErrLost, "it would drop a window that the shadow has")
			})
			p.Windows[1].listing = listing
			c.spoil(t, f, r)
			f.Unchanged(t, func() { requireSame(t, c.want, r.swap(t.Context(), p, "")) })
			if name == "the ledger was torn meanwhile" {
				return // a new plan takes the mark into account
			}
			f.Unchanged(t, func() {
				_, err := r.Swap(t.Context(), Choice{})
				require.Error(t, err)
			})
		})
	}
}

// requireSame requires an error of the same kind, with the same values, as another.
func requireSame(t testing.TB, want, got error) {
	t.Helper()
	var moved *MovedError
	var schema *ranking.SchemaError
	switch {
	case errors.As(want, &moved):
		var is *MovedError
		require.ErrorAs(t, got, &is)
		require.Equal(t, moved, is)
	case errors.As(want, &schema):
		var is *ranking.SchemaError
		require.ErrorAs(t, got, &is)
		require.Equal(t, schema.Found, is.Found)
	default:
		require.ErrorIs(t, got, want)
	}
}

func (f *fixture) text(t testing.TB, key, text string) {
	t.Helper()
	require.NoError(t, f.Client.Set(t.Context(), key, text, time.Minute).Err())
}

func (f *fixture) field(t testing.TB, s keyed, field, text string) {
	t.Helper()
	require.NoError(t, f.Client.HSet(t.Context(), s.Keys().Ledger(), field, text).Err())
}

func (f *fixture) noField(t testing.TB, s keyed, field string) {
	t.Helper()
	require.NoError(t, f.Client.HDel(t.Context(), s.Keys().Ledger(), field).Err())
}

func (f *fixture) list(t testing.TB, s keyed, name, listing string) {
	t.Helper()
	require.NoError(t, f.Client.HSet(t.Context(), s.Keys().Windows(), name, listing).Err())
}

func TestASwapThatIsNotDueIsRefusedBeforeItIsTried(t *testing.T) {
	f, r := rebuilding(t)
	swap := func(want error) {
		t.Helper()
		f.Unchanged(t, func() {
			_, err := r.Swap(t.Context(), Choice{})
			requireSame(t, want, err)
		})
	}
	swap(ErrUnheld)
	f.held(t, r)
	f.field(t, f.Store, "events/3", "20")
	swap(&MovedError{Field: "events/3", Live: "20", Shadow: "10"})
	f.field(t, f.Store, "events/3", "10")
	f.field(t, r.shadow, "events/4", "10")
	require.NoError(t, f.Client.HSet(t.Context(), r.shadow.Keys().Origin(), "events/4", "0 0").Err())
	f.field(t, f.Store, "events/5", "10")
	swap(&MovedError{Field: "events/5", Live: "10", Shadow: ""})
}

// If the live ledger is lost, the caller has seen only the shadow's.
func TestALostLedgerIsReplacedByNoOtherThanTheCallerSaw(t *testing.T) {
	f, r := rebuilding(t)
	f.held(t, r)
	f.Del(t, f.Store.Keys().Ledger())
	p, err := r.plan(t.Context(), Choice{})
	require.NoError(t, err)
	f.field(t, r.shadow, "events/3", "9")
	f.Unchanged(t, func() { requireSame(t, &MovedError{Field: "events/3", Shadow: "9"}, r.swap(t.Context(), p, "")) })
}

func TestASwapListsWhatIsNewAndDropsWhatTheLogDoesNotKnow(t *testing.T) {
	f, r := dying(t, "hello") // the swap does not need this command
	f.Piece.Windows[1].Board = "new"
	eu := f.Piece.Windows[0]
	eu.Board = "eu"
	require.NotEmpty(t, f.Listing(t, eu))
	p, err := r.Swap(t.Context(), Choice{})
	require.NoError(t, err)
	actions := map[string]Action{}
	for _, w := range p.Windows {
		actions[w.Board+" "+w.Period] = w.Action
	}
	require.Equal(t, map[string]Action{"eu weekly": Dropped, "new monthly": Replaced, "global weekly": Replaced, "global monthly": Replaced, "global yearly": Replaced}, actions)
	w := f.Piece.Windows[1]
	expires := w.End + retention.Milliseconds()
	require.Equal(t, rankingtest.Entry(w, expires), f.Listing(t, w))
	f.ExpiresAt(t, f.Key(1), expires+day)
	require.False(t, f.Client.HExists(t.Context(), f.Store.Keys().Windows(), eu.Listing()).Val())
	require.Zero(t, f.Client.Exists(t.Context(), f.Store.Keys().Window(&eu)).Val())
	f.MustApply(t)
}

func TestASwapBringsBackALedgerThatIsLost(t *testing.T) {
	f, r := rebuilding(t)
	f.held(t, r)
	f.Del(t, f.Store.Keys().Ledger())
	f.Del(t, f.Store.Keys().Schema())
	p, err := r.plan(t.Context(), Choice{})
	require.NoError(t, err)
	require.True(t, p.Orphaned)
	f.field(t, f.Store, "events/3", "10") // a worker started meanwhile
	f.text(t, f.Store.Keys().Schema(), f.Store.Schema())
	f.Unchanged(t, func() {
		requireSame(t, &MovedError{Field: "events/3", Live: "10", Shadow: "10"}, r.swap(t.Context(), p, ""))
	})
	f.Del(t, f.Store.Keys().Ledger())
	f.Del(t, f.Store.Keys().Schema())
	_, err = r.Swap(t.Context(), Choice{})
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"u1": 7}, f.Points(t, 0))
	st, err := f.Store.State(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]string{"events/3": "0 0"}, st.Origins)
	f.MustApply(t)
}

func TestASwapWhoseAnswerIsLostHasSwappedOnce(t *testing.T) {
	f, r := rebuilding(t)
	f.held(t, r)
	p, err := r.plan(t.Context(), Choice{})
	require.NoError(t, err)
	require.NoError(t, r.swap(t.Context(), p, ""))
	r.swapped = false // as if the reply was lost
	f.MustApply(t)
	f.Unchanged(t, func() {
		require.NoError(t, r.swap(t.Context(), p, ""))
		r.swapped = false
		again, err := r.Swap(t.Context(), Choice{})
		require.NoError(t, err)
		require.Same(t, p, again)
	})
}

// dying is a rebuild on a server of its own, by a user who may not run command. The swap opens one window,
// drops one and replaces three.
func dying(t *testing.T, command string) (*fixture, *Rebuild) {
	t.Helper()
	in, server := rankingtest.Private(t)
	f := &fixture{in}
	f.Piece.Windows[0].Board = "eu" // a board that is not in the log
	f.Add(t, f.Member("u1", 10))
	f.Piece = f.NewPiece()
	r := f.rebuild(t, f.Member("u1", 7))
	p := f.NewPiece()
	a, _, err := f.Store.Apply(t.Context(), &p)
	require.NoError(t, err)
	require.Equal(t, ledger.Applied, a.Outcome)
	p.Windows[1].Board = "new" // a board that is not among the live ones
	p.Groups = []ledger.Group{{Windows: []int{1}, Members: []ledger.Member{f.Member("u1", 3)}}}
	a, _, err = r.shadow.Apply(t.Context(), &p)
	require.NoError(t, err)
	require.Equal(t, ledger.Applied, a.Outcome)
	f.Next += 10
	f.held(t, r)
	r.live = f.StoreOf(t, func(c *ranking.Config) { c.Client = f.As(t, server, "~*", "+@all", "-"+command) })
	return f, r
}

func TestASwapThatDiesMidwayLeavesALedgerThatSaysSoAndAnotherSettlesIt(t *testing.T) {
	for command, torn := range map[string]bool{
		"get": false, "hget": false, "hlen": false, "exists": false, "hset": false, "time": false, "set": false,
		"unlink": true, "rename": true, "pexpireat": true, "hdel": true,
	} {
		t.Run(command, func(t *testing.T) {
			f, r := dying(t, command)
			before := rankingtest.Contents(t, f.Client, f.Prefix)
			_, err := r.Swap(t.Context(), Choice{})
			require.True(t, redisconn.IsMissingRight(err), err)
			if !torn {
				require.Equal(t, before, rankingtest.Contents(t, f.Client, f.Prefix))
				return
			}
			require.True(t, r.Unsure())
			position, err := f.Store.Position(t.Context(), ledger.Partition{Topic: "events", Number: 3})
			require.NoError(t, err)
			require.Equal(t, ledger.Torn(ledger.At(f.Next)), position)
			f.Piece.Expected, f.Piece.Next = ledger.At(f.Next), ledger.At(f.Next+10)
			require.Equal(t, ledger.Answer{Outcome: ledger.Moved, Found: position}, f.Apply(t))
			for key, text := range rankingtest.Contents(t, f.Client, f.Prefix) {
				require.True(t, !strings.Contains(key, "~") || strings.HasSuffix(text, "expires"), "what is left expires: %s", key)
			}
			r.live = f.Store // the user with all rights
			require.NoError(t, r.Close(t.Context()))
			second := f.rebuild(t, f.Member("u1", 7))
			f.held(t, second)
			p, err := second.Swap(t.Context(), Choice{})
			require.NoError(t, err)
			require.NotEmpty(t, p.Windows)
			for n := range 3 {
				require.Equal(t, map[string]int64{"u1": 7}, f.Points(t, n))
			}
			f.MustApply(t)
		})
	}
}

// A swap that dies midway has not changed a kept window, but its torn mark looks like that of a piece.
func TestASwapThatDiesMidwayAndKeepsAWindowIsSettledOnceThatIsAccepted(t *testing.T) {
	f, r := dying(t, "hdel")
	now := time.Now().UnixMilli()
	read := ledger.Origin{Offset: 5, Time: now}
	for i := range f.Piece.Windows {
		read.Time = min(read.Time, f.Piece.Windows[i].Start)
	}
	require.NoError(t, f.Client.ZAdd(t.Context(), f.Store.Keys().Listed("global:weekly:kept"), redis.Z{Score: 3, Member: "u"}).Err())
	f.list(t, f.Store, "global:weekly:kept", rankingtest.Listed(read.Time-1, now-day, now+50*day))
	require.NoError(t, f.Client.HSet(t.Context(), r.shadow.Keys().Origin(), "events/3", read.String()).Err())
	_, err := r.Swap(t.Context(), Choice{})
	require.True(t, redisconn.IsMissingRight(err), err)
	r.live = f.Store
	require.NoError(t, r.Close(t.Context()))
	second, err := Lock(t.Context(), f.Store, "me", lease)
	require.NoError(t, err)
	f.fold(t, second, read, f.Member("u1", 7))
	f.held(t, second)
	f.Unchanged(t, func() {
		_, err = second.Swap(t.Context(), Choice{})
		require.ErrorContains(t, err, "the log doesn't reach back to the beginning of global:weekly:kept")
	})
	p, err := second.Swap(t.Context(), Choice{AcceptIncomplete: true})
	require.NoError(t, err)
	require.Contains(t, fatesOf(p), "weekly kept incomplete")
	require.InDelta(t, 3, f.Client.ZScore(t.Context(), f.Store.Keys().Listed("global:weekly:kept"), "u").Val(), 0)
	f.MustApply(t)
}

// The next rebuild would refuse a ledger without a schema.
func TestASwapOfALostLedgerAndSchemaThatDiesMidwayIsSettledByAnother(t *testing.T) {
	f, r := dying(t, "hdel")
	f.Del(t, f.Store.Keys().Ledger())
	f.Del(t, f.Store.Keys().Schema())
	_, err := r.Swap(t.Context(), Choice{})
	require.True(t, redisconn.IsMissingRight(err), err)
	r.live = f.Store
	require.NoError(t, r.Close(t.Context()))
	second := f.rebuild(t, f.Member("u1", 7))
	f.held(t, second)
	_, err = second.Swap(t.Context(), Choice{})
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"u1": 7}, f.Points(t, 0))
	f.MustApply(t)
}

// The key of a window lives a day longer than the window. A window that was over earlier has no key to
// replace.
func TestAWindowThatIsOverSinceTheShadowBeganItIsLeftAlone(t *testing.T) {
	f, r := rebuilding(t)
	now := time.Now().UnixMilli()
	over := "global:weekly:over"
	f.list(t, r.shadow, over, rankingtest.Listed(now-70*day, now-63*day, now-3*day))
	require.NoError(t, f.Client.ZAdd(t.Context(), r.shadow.Keys().Listed(over), redis.Z{Score: 1, Member: "u"}).Err())
	f.held(t, r)
	p, err := r.Swap(t.Context(), Choice{})
	require.NoError(t, err)
	require.Len(t, p.Windows, 3)
	require.False(t, f.Client.HExists(t.Context(), f.Store.Keys().Windows(), over).Val())
	require.Equal(t, map[string]int64{"u1": 7}, f.Points(t, 0))
	f.MustApply(t)
}
