package shadow

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/testenv"
)

// lostRedis is a fixture whose Redis has nothing of it, and a rebuild of that.
func lostRedis(t *testing.T) (*fixture, *Rebuild) {
	t.Helper()
	f := newFixture(t, testenv.RedisClient(t), testenv.Prefix(t))
	r, err := Lock(t.Context(), f.store, "me", lease)
	require.NoError(t, err)
	return f, r
}

// page is one of the fixture's nth window.
func (f *fixture) page(n int, rows ...ranking.SnapshotRow) *ranking.SnapshotPage {
	w := f.piece.Windows[n]
	return &ranking.SnapshotPage{
		Instant: ranking.Instant{Now: f.now}, Window: w.Listing(), Rows: rows,
		Listing: fmt.Sprintf("%d %d %d", w.Start, w.End, w.End+retention.Milliseconds()),
	}
}

func final(p *ranking.SnapshotPage) *ranking.SnapshotPage {
	at := strings.LastIndex(p.Listing, " ")
	p.Listing = p.Listing[:at] + " =2" + p.Listing[at:]
	return p
}

func row(member string, score float64) ranking.SnapshotRow {
	return ranking.SnapshotRow{Member: member, Score: score}
}

// startAt is where the one partition begins.
func startAt(at int64, origin *ledger.Origin) []ledger.StartPosition {
	return []ledger.StartPosition{{Partition: ledger.Partition{Topic: "events", Number: 3}, At: ledger.At(at), Origin: origin}}
}

// loadAll loads pages and begins the shadow's ledger at 20.
func loadAll(t *testing.T, r *Rebuild, pages ...*ranking.SnapshotPage) *Loading {
	t.Helper()
	l := r.Load("s1", time.Now())
	for _, p := range pages {
		require.NoError(t, l.Page(t.Context(), p))
	}
	require.NoError(t, l.End(t.Context()))
	begun, err := r.Shadow().Begin(t.Context(), startAt(20, &ledger.Origin{}))
	require.NoError(t, err)
	require.Equal(t, ledger.Began, begun)
	return l
}

// passedSince are events that passed a window by after any page was read.
const passedSince = "9000000000000000-9000000000000001"

func TestALoadedSnapshotTakesTheBoardsPlaceWithWhatIsFoldedOntoIt(t *testing.T) {
	f, r := lostRedis(t)
	loadAll(t, r,
		f.page(0, row("u1", 7.25), row("u2", 3)),
		f.page(0, row("u1", 9.5)),
		&ranking.SnapshotPage{Instant: ranking.Instant{Now: f.now}, Window: f.page(0).Window, Listing: f.page(0).Listing, Hidden: true, Rows: []ranking.SnapshotRow{row("u3", 1)}},
		final(f.page(1, row("u1", 0.1+0.2))))
	require.NoError(t, r.Restored(t.Context(),
		map[string]string{"eu:weekly:x": "9999999999999"},
		map[string]string{
			f.page(1).Window: "2 17 14-15,17-18 reopened 19 me", "@17": `["events/3","20"]`,
			f.page(0).Window: "1 16 11-12," + passedSince,
		}))

	require.Regexp(t, `^1 16 reopened \d+ restored$`, f.client.HGet(t.Context(), f.store.Keys().Final(), f.page(0).Window).Val(),
		"without the swap the live window lacks nothing")

	p := f.newPiece()
	p.Expected, p.Next = ledger.At(20), ledger.At(30)
	p.Windows = p.Windows[:1] // the second takes nothing any more
	p.Groups = []ledger.Group{{Windows: []int{0}, Members: []ledger.Member{f.member("u2", 5)}}}
	a, _, err := r.Shadow().Apply(t.Context(), &p)
	require.NoError(t, err)
	require.Equal(t, ledger.Applied, a.Outcome)

	f.held(t, r)
	plan, err := r.Swap(t.Context(), Choice{})
	require.NoError(t, err)
	require.True(t, plan.Orphaned)
	require.NoError(t, r.Unlink(t.Context(), 0))
	require.NoError(t, r.Close(t.Context()))

	scores := f.client.ZRangeWithScores(t.Context(), f.key(0), 0, -1).Val()
	require.Len(t, scores, 3)
	require.Equal(t, redisZ(1, "u3"), scores[0], "a hidden row comes back shown")
	require.Equal(t, redisZ(9.5, "u1"), scores[2], "of two rows the later")
	require.Equal(t, "u2", scores[1].Member)
	require.Equal(t, int64(8), int64(scores[1].Score), "what the snapshot has, and what was folded")
	require.Equal(t, []any{0.1 + 0.2}, []any{f.client.ZScore(t.Context(), f.key(1), "u1").Val()}, "to the last bit")
	require.Equal(t, int64(2), ranking.ListedRevision(f.listing(t, f.piece.Windows[1])), "a final window comes back final")
	require.Zero(t, ranking.ListedRevision(f.listing(t, f.piece.Windows[0])))

	k := f.store.Keys()
	sealed := f.client.HGetAll(t.Context(), k.Final()).Val()
	require.Equal(t, "2 17 14-15", sealed[f.page(1).Window], "what passed it by since its rows were read isn't so any more")
	require.Equal(t, `["events/3","20"]`, sealed["@17"])
	require.Regexp(t, `^1 16 11-12 reopened \d+ restored$`, sealed[f.page(0).Window], "sealed after its pages were read: the next seal is another revision")
	require.Equal(t, map[string]string{"eu:weekly:x": "9999999999999"}, f.client.HGetAll(t.Context(), k.Dropped()).Val())
	require.Equal(t, "30", f.client.HGet(t.Context(), k.Ledger(), "events/3").Val())
	for key := range contents(t, f.client, f.prefix) {
		if strings.Contains(key, "~") {
			require.True(t, strings.HasSuffix(key, ":schema"), "nothing else of the restore is left: %s", key) // the mark of the swap
		}
	}
}

func TestRowsThatAreSentAgainChangeNothing(t *testing.T) {
	f, r := lostRedis(t)
	l := r.Load("s1", time.Now())
	require.NoError(t, l.Page(t.Context(), f.page(0, row("u1", 7))))
	was := *r.shadow.loads.Load()
	before := *l
	require.NoError(t, l.Page(t.Context(), f.page(0, row("u1", 8))))
	require.NoError(t, l.Page(t.Context(), f.page(0, row("u1", 9))))
	scored := func() []float64 {
		return f.client.ZMScore(t.Context(), r.shadow.Keys().Window(&f.piece.Windows[0]), "u1").Val()
	}

	again := *l
	again.sent--
	second := l.of + " 2"
	r.shadow.loads.Store(&second)
	require.NoError(t, again.Page(t.Context(), f.page(0, row("u1", 100))), "the answer was lost")
	require.Equal(t, []float64{9}, scored())

	r.shadow.loads.Store(&was)
	require.ErrorIs(t, before.Page(t.Context(), f.page(0, row("u1", 100))), ErrLost, "it comes late")
	require.Equal(t, []float64{9}, scored())
}

// A Redis that goes back to the middle of a load has some rows, and no more: neither is it gone on with
// from there, nor taken for loaded.
func TestARedisThatWentBackWhileItWasLoadedIsNoticed(t *testing.T) {
	f, r := lostRedis(t)
	l := r.Load("s1", time.Now())
	require.NoError(t, l.Page(t.Context(), f.page(0, row("u1", 7))))
	mark := f.client.Get(t.Context(), r.shadow.Keys().Loaded()).Val()
	require.NoError(t, l.Page(t.Context(), f.page(0, row("u2", 8))))
	f.client.ZRem(t.Context(), r.shadow.Keys().Window(&f.piece.Windows[0]), "u2")
	require.NoError(t, f.client.Set(t.Context(), r.shadow.Keys().Loaded(), mark, time.Minute).Err())

	f.unchanged(t, func() {
		_, err := r.Shadow().Begin(t.Context(), startAt(20, &ledger.Origin{}))
		require.ErrorIs(t, err, ErrLost)
		require.ErrorIs(t, l.Page(t.Context(), f.page(0, row("u3", 9))), ErrLost)
	})
	f.del(t, r.shadow.Keys().Loaded())
	f.unchanged(t, func() {
		_, err := r.Shadow().Begin(t.Context(), startAt(20, &ledger.Origin{}))
		require.ErrorIs(t, err, ErrLost)
		require.ErrorIs(t, l.Page(t.Context(), f.page(0, row("u3", 9))), ErrLost)
		require.ErrorIs(t, r.Renew(t.Context()), ErrLost)
	})
}

func TestWhatIsLoadedLivesByTheLeaseFromItsFirstMomentOn(t *testing.T) {
	f, r := lostRedis(t)
	l := r.Load("s1", time.Now())
	require.NoError(t, l.Dropped(t.Context(), map[string]string{"eu:weekly:x": "9999999999999"}))
	none := final(f.page(2))
	require.NoError(t, l.Page(t.Context(), none))
	require.NoError(t, l.Page(t.Context(), f.page(0, row("u1", 7))))
	require.Equal(t, "none", setsWord(f.client.HGet(t.Context(), r.shadow.Keys().Windows(), none.Window).Val()))
	own := f.own(t)
	require.Len(t, own, 1+3+1, "lock; loaded, windows, dropped; a board: %v", own)
	for key, left := range own {
		require.Positive(t, left, key)
		require.LessOrEqual(t, left, lease.Milliseconds(), key)
		require.NoError(t, f.client.PExpire(t.Context(), f.prefix+key, 20*time.Second).Err())
	}
	require.NoError(t, r.Renew(t.Context()))
	for key, left := range f.own(t) {
		require.Greater(t, left, (lease - 15*time.Second).Milliseconds(), key)
	}
	require.NoError(t, r.Unlink(t.Context(), 0))
	require.NoError(t, r.Close(t.Context()))
	require.Empty(t, f.own(t))
}

func setsWord(listing string) string {
	words := strings.Fields(listing)
	return strings.TrimPrefix(words[len(words)-2], "+")
}

func TestOfAWindowThatIsOverNothingIsLoaded(t *testing.T) {
	f, r := lostRedis(t)
	over := f.page(1, row("u1", 7))
	over.Listing = "1 2 3"
	l := loadAll(t, r, f.page(0, row("u1", 7)), over, over)
	require.Equal(t, []string{over.Window}, l.Over())
	all, err := r.Shadow().Listings(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
}

// Of a window that nobody on this shard is in, one has the seal alone, the other the empty id.
func TestAWindowWithNobodyInItComesBack(t *testing.T) {
	f, r := lostRedis(t)
	erased := f.page(0, row("", 0))
	erased.Hidden = true
	loadAll(t, r, erased, final(f.page(1)), f.page(2, row("u1", 4)))
	f.held(t, r)
	_, err := r.Swap(t.Context(), Choice{})
	require.NoError(t, err)
	require.Equal(t, "hidden", setsWord(f.listing(t, f.piece.Windows[0])))
	require.Equal(t, "none", setsWord(f.listing(t, f.piece.Windows[1])))
	require.Zero(t, f.client.Exists(t.Context(), f.key(0), f.key(1)).Val())
	require.Equal(t, int64(1), f.client.ZCard(t.Context(), f.store.Keys().Hidden(f.piece.Windows[0].Listing())).Val())
}

func TestWhatWasDroppedIsNotOpenedByTheFold(t *testing.T) {
	f, r := lostRedis(t)
	l := r.Load("s1", time.Now())
	require.NoError(t, l.Dropped(t.Context(), map[string]string{f.piece.Windows[1].Listing(): "9999999999999"}))
	require.NoError(t, l.End(t.Context()))
	_, err := r.Shadow().Begin(t.Context(), startAt(20, &ledger.Origin{}))
	require.NoError(t, err)
	p := f.newPiece()
	p.Expected, p.Next = ledger.At(20), ledger.At(30)
	p.Groups = []ledger.Group{{Windows: []int{0, 1, 2}, Members: []ledger.Member{f.member("u2", 5)}}}
	_, _, err = r.Shadow().Apply(t.Context(), &p)
	require.NoError(t, err)
	all, err := r.Shadow().Listings(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.NotContains(t, all, f.piece.Windows[1].Listing())
}

// What the snapshot lacked is brought back only if that is accepted, and shown as incomplete.
func TestWindowsThatLackedEventsInTheSnapshotAreNamed(t *testing.T) {
	f, r := lostRedis(t)
	l := r.Load("s1", time.Now())
	require.NoError(t, l.Page(t.Context(), f.page(0, row("u1", 7))))
	require.NoError(t, l.End(t.Context()))
	since := &ledger.Origin{Offset: 5, Time: f.now + 1}
	_, err := r.Shadow().Begin(t.Context(), startAt(20, since))
	require.NoError(t, err)
	f.held(t, r)
	_, err = r.Swap(t.Context(), Choice{})
	require.ErrorContains(t, err, "the snapshot has "+f.page(0).Window+", which lacked events")
	_, err = r.Swap(t.Context(), Choice{AcceptIncomplete: true})
	require.NoError(t, err)
	st, err := f.store.State(t.Context())
	require.NoError(t, err)
	some, err := incomplete(st.Origins, f.piece.Windows[0].Start)
	require.NoError(t, err)
	require.Equal(t, []string{"events/3"}, some)
}

func TestALiveFinalWindowIsKeptAndOneThatWasReopenedToo(t *testing.T) {
	f := someone(t)
	k := f.store.Keys()
	for i, word := range []string{" =1", ""} {
		w := f.piece.Windows[i]
		f.list(t, f.store, w.Listing(), fmt.Sprintf("%d %d%s %d", w.Start, w.End, word, w.End+retention.Milliseconds()))
	}
	require.NoError(t, f.client.HSet(t.Context(), k.Final(), f.piece.Windows[1].Listing(), "1 5 3-4 reopened 6 me").Err())
	r, err := Lock(t.Context(), f.store, "me", lease)
	require.NoError(t, err)
	l := r.Load("s1", time.Now())
	for i := range 3 {
		require.NoError(t, l.Page(t.Context(), final(f.page(i, row("u1", 99)))))
	}
	require.NoError(t, l.End(t.Context()))
	_, err = r.Shadow().Begin(t.Context(), startAt(f.next, &ledger.Origin{}))
	require.NoError(t, err)
	require.NoError(t, r.Restored(t.Context(), nil, map[string]string{f.piece.Windows[1].Listing(): "2 17"}))
	f.held(t, r)
	_, err = r.Swap(t.Context(), Choice{})
	require.NoError(t, err)
	for i, want := range []int64{10, 10, 99} {
		require.Equal(t, want, int64(f.client.ZScore(t.Context(), f.key(i), "u1").Val()), f.piece.Windows[i].Listing())
	}
	require.Equal(t, "1 5 3-4 reopened 6 me", f.client.HGet(t.Context(), k.Final(), f.piece.Windows[1].Listing()).Val(), "the live record is of later")
}

func TestAHoldThatIsKeptIsRenewedAndItsLossEndsTheRebuild(t *testing.T) {
	f, r := lostRedis(t)
	hold := f.store.Keys().Hold()
	require.NoError(t, r.Keep(t.Context()))
	require.NoError(t, f.client.PExpire(t.Context(), hold, 20*time.Second).Err())
	require.NoError(t, r.Renew(t.Context()))
	require.Greater(t, f.client.PTTL(t.Context(), hold).Val(), lease-15*time.Second)
	begun, err := f.store.Begin(t.Context(), startAt(0, nil))
	require.NoError(t, err)
	require.Equal(t, ledger.HeldUp, begun, "nobody begins meanwhile")
	f.del(t, hold) // it has lapsed: somebody may have begun
	require.ErrorIs(t, r.Renew(t.Context()), ErrLost)
	require.NoError(t, r.Keep(t.Context()))
	require.NoError(t, r.Release(t.Context()))
	require.NoError(t, r.Renew(t.Context()))
	require.Zero(t, f.client.Exists(t.Context(), hold).Val())
}

// What is noted of a window's seals is what its rows are of, whatever became of it until the snapshot was through.
func TestWhatIsNotedOfASealIsWhatTheRowsAreOf(t *testing.T) {
	begun, read := time.UnixMicro(100), time.UnixMicro(200)
	for _, c := range []struct{ what, record, listing, noted, passed string }{
		{"it is final", "2 90 10-20 after why", "1 2 =2 3", "2 90 10-20 after why", ""},
		{"it was reopened after its rows were read", "2 90 10-20,90-210 reopened 5 why", "1 2 =2 3", "2 90 10-20", ""},
		{"and sealed anew", "3 220 10-20,90-210 after why", "1 2 =2 3", "2 90 10-20", ""},
		{"and reopened again", "3 220 10-20,90-210,220-230 reopened 5 why", "1 2 =2 3", "2 90 10-20", ""},
		{"by a clock that went back", "2 250 10-20,250-30 reopened 5 why", "1 2 =2 3", "2 250 10-20", ""},
		{"it was reopened before the snapshot was begun", "1 10 10-20 reopened 5 why", "1 2 3", "1 10 reopened 5 why", "10-20"},
		{"it was reopened before its rows were read", "1 10 10-110 reopened 5 why", "1 2 3", "1 10 reopened 5 why", "0-110"},
	} {
		noted, passed := sealRecord("global:weekly:x", c.record, c.listing, begun, read)
		require.Equal(t, []string{c.noted, c.passed}, []string{noted, passed}, c.what)
	}
	noted, passed := sealRecord("global:weekly:x", "2 220 10-20", "1 2 3", begun, read)
	require.Regexp(t, `^2 220 reopened \d+ restored$`, noted, "it was sealed after its rows were read")
	require.Equal(t, "10-20", passed)
}
