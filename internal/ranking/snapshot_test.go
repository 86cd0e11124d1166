package ranking

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/embedded"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/lua"
	"github.com/standings/standings/test/testenv"
)

// What a snapshot has to be is worked out here from the log alone: an event is a member and points,
// its offset its index.

type logged struct {
	member string
	points int64
	hash   uint64
}

// snapLog is a log of events of some members, and a consumer that sweeps it in pieces which end
// anywhere.
type snapLog struct {
	*fixture

	events []logged
	at     ledger.Position
	random *rand.Rand
}

func newSnapLog(t testing.TB, f *fixture, members, events int) *snapLog {
	t.Helper()
	l := &snapLog{fixture: f, random: rand.New(rand.NewPCG(1, 2)), at: ledger.At(f.next)} //nolint:gosec // a test
	for range events {
		name := fmt.Sprintf("m%d", l.random.IntN(members))
		l.events = append(l.events, logged{name, 1 + l.random.Int64N(5), xxhash.Sum64String(name)})
	}
	return l
}

// counts reports whether a position denotes an event.
func counts(p ledger.Position, offset int, hash uint64) bool {
	return int64(offset) < p.From || int64(offset) < p.To && hash < p.Hash
}

// step sends one piece.
func (l *snapLog) step(t testing.TB) {
	t.Helper()
	require.NoError(t, l.send(t.Context()))
}

func (l *snapLog) send(ctx context.Context) error {
	from, to := l.at.From, l.at.To
	if !l.at.Sweeping() {
		to = min(from+1+l.random.Int64N(40), int64(len(l.events)))
	}
	next := ledger.At(to)
	if l.random.IntN(3) > 0 {
		hash := l.at.Hash + l.random.Uint64N(^uint64(0)-l.at.Hash)
		if hash > l.at.Hash {
			next = ledger.Position{From: from, To: to, Hash: hash}
		}
	}
	sums := map[string]int64{}
	for i := from; i < to; i++ {
		if e := l.events[i]; counts(next, int(i), e.hash) && !counts(l.at, int(i), e.hash) {
			sums[e.member] += e.points
		}
	}
	p := l.newPiece()
	p.Expected, p.Next = l.at, next
	g := ledger.Group{Windows: []int{0, 1, 2}}
	for _, m := range slices.Sorted(maps.Keys(sums)) {
		g.Members = append(g.Members, l.member(m, sums[m]))
	}
	p.Groups = []ledger.Group{g}
	a, _, err := l.store.Apply(ctx, &p)
	if err == nil && a.Outcome != ledger.Applied {
		err = fmt.Errorf("the piece to %v was answered %v", next, a)
	}
	l.at = next
	return err
}

func (l *snapLog) done() bool { return l.at == ledger.At(int64(len(l.events))) }

func (l *snapLog) position(t testing.TB, in *Instant) ledger.Position {
	t.Helper()
	p, err := ledger.Parse(in.Ledger["events/3"])
	require.NoError(t, err)
	return p
}

// points are a member's by a position.
func (l *snapLog) pointsAt(p ledger.Position, member string) (points int64) {
	for i, e := range l.events {
		if e.member == member && counts(p, i, e.hash) {
			points += e.points
		}
	}
	return points
}

type snapRow struct {
	at     ledger.Position
	points int64
	hidden bool
}

// read reads a whole snapshot, checks each row by its own page's position, and calls between after
// each page.
func (l *snapLog) read(t testing.TB, between func()) (begin ledger.Position, rows map[string]map[string]snapRow) {
	t.Helper()
	sn, err := l.store.BeginSnapshot(t.Context(), time.Minute)
	require.NoError(t, err)
	rows = l.pages(t, sn, between)
	_, err = sn.End(t.Context())
	require.NoError(t, err)
	return l.position(t, &sn.Begin), rows
}

func (l *snapLog) pages(t testing.TB, sn *Snapshot, between func()) map[string]map[string]snapRow {
	t.Helper()
	rows := map[string]map[string]snapRow{}
	for p, err := range sn.Pages(t.Context(), 0) {
		require.NoError(t, err)
		if p.First || p.Gone {
			rows[p.Window] = map[string]snapRow{}
		}
		at := l.position(t, &p.Instant)
		w, _, err := ParseListing(p.Window, p.Listing)
		require.NoError(t, err)
		layout, ok := l.store.Layout(w.Board, w.Period)
		require.True(t, ok)
		for _, r := range p.Rows {
			tuple, _, err := layout.Decode(r.Score)
			require.NoError(t, err)
			require.Equal(t, l.pointsAt(at, r.Member), tuple[0], "%s at %v", r.Member, at)
			rows[p.Window][r.Member] = snapRow{at, tuple[0], p.Hidden}
		}
		between()
	}
	return rows
}

// restored is what a replay of the log makes of rows, up to its end: to each member what lies past its
// page's position, to one on no page all from the first position on.
func (l *snapLog) restored(begin ledger.Position, rows map[string]snapRow) map[string]int64 {
	all := map[string]int64{}
	for member, r := range rows {
		all[member] = r.points
	}
	for i := begin.From; i < int64(len(l.events)); i++ {
		e := l.events[i]
		if r, ok := rows[e.member]; !ok || !counts(r.at, int(i), e.hash) {
			all[e.member] += e.points
		}
	}
	return all
}

func (l *snapLog) want() map[string]int64 {
	all := map[string]int64{}
	for _, e := range l.events {
		all[e.member] += e.points
	}
	return all
}

func smallPages(t testing.TB, rows int) {
	t.Helper()
	was := snapshotRows
	snapshotRows = rows
	t.Cleanup(func() { snapshotRows = was })
}

func (l *snapLog) restores(t testing.TB, begin ledger.Position, rows map[string]map[string]snapRow) {
	t.Helper()
	require.NotEmpty(t, rows)
	for window := range rows {
		require.Equal(t, l.want(), l.restored(begin, rows[window]), window)
	}
}

func TestPagesThatAreReadUnderTrafficAreExactEachByItsOwnPosition(t *testing.T) {
	scans(t)
	smallPages(t, 10)
	l := newSnapLog(t, fixed(t), 700, 4000)
	for l.at.From < 1500 {
		l.step(t)
	}
	instants := map[string]bool{}
	begin, rows := l.read(t, func() {
		if !l.done() {
			l.step(t)
		}
		instants[l.at.String()] = true
	})
	require.Greater(t, len(instants), 30)
	require.Len(t, rows, 3)
	l.restores(t, begin, rows)
}

// scans has a test run where ZSCAN returns who is there from its begin to its end: that of the embedded
// Redis goes by places, which others take meanwhile.
func scans(t *testing.T) {
	t.Helper()
	testenv.RealRedis(t, "its ZSCAN misses members that others pass")
}

// Small sets come in one page.
func TestPagesOfAnEmbeddedRedisAreExact(t *testing.T) {
	server, err := embedded.StartMiniredis(t.Context())
	require.NoError(t, err)
	t.Cleanup(server.Close)
	client := redis.NewClient(&redis.Options{Addr: server.Address})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	f := newFixture(t, client, "lb")
	f.begin(t)
	l := newSnapLog(t, f, 300, 2000)
	for l.at.From < 1000 {
		l.step(t)
	}
	begin, rows := l.read(t, func() {
		if !l.done() {
			l.step(t)
		}
	})
	l.restores(t, begin, rows)
}

func TestAWindowThatIsOpenedWhileTheOthersAreReadLiesPastTheFirstPosition(t *testing.T) {
	l := newSnapLog(t, fixed(t), 20, 200)
	begin, rows := l.read(t, func() {})
	require.Empty(t, rows)
	l.step(t)
	require.Equal(t, l.want(), l.restored(begin, nil))
}

func (l *snapLog) ban(t testing.TB, members ...string) {
	t.Helper()
	for _, m := range members {
		require.NoError(t, l.store.Ban(t.Context(), Ban{Member: m}))
	}
}

// own are members that live on the fixture's shard, which bans are carried out on.
func (l *snapLog) own(n int) (members []string) {
	for i := 0; len(members) < n; i++ {
		m := fmt.Sprintf("m%d", i)
		if of.Of(xxhash.Sum64String(m)) == shard {
			members = append(members, m)
		}
	}
	return members
}

func TestWhoIsBannedOrShownAgainWhileAWindowIsReadIsOnAPage(t *testing.T) {
	smallPages(t, 10)
	l := newSnapLog(t, fixed(t), 600, 3000)
	for !l.done() {
		l.step(t)
	}
	own := l.own(60)
	l.ban(t, own[:40]...)
	pages, changed := 0, 0
	begin, rows := l.read(t, func() {
		if pages++; pages%20 == 0 && changed < 6 {
			changed++
			require.NoError(t, l.store.Unban(t.Context(), Ban{Member: own[changed]}))
			l.ban(t, own[40+changed])
		}
	})
	require.Equal(t, 6, changed)
	l.restores(t, begin, rows)
	hidden := 0
	for _, r := range slices.Collect(maps.Values(rows)) {
		for _, m := range own {
			if r[m].hidden {
				hidden++
			}
		}
	}
	require.Equal(t, 3*40, hidden)
}

func TestAWindowIsReadOnceABanThatHasBegunIsCarriedOut(t *testing.T) {
	was := anew
	anew.Patience = 300 * time.Millisecond
	t.Cleanup(func() { anew = was })
	l := newSnapLog(t, fixed(t), 20, 100)
	for !l.done() {
		l.step(t)
	}
	m := l.own(1)[0]
	l.ban(t, m)
	banned := l.store.keys.Banned()
	require.NoError(t, l.client.HSet(t.Context(), banned, ":"+m, "showing x", "version", "x").Err())
	sn, err := l.store.BeginSnapshot(t.Context(), time.Minute)
	require.NoError(t, err)
	for _, err := range sn.Pages(t.Context(), 0) {
		require.ErrorIs(t, err, ErrUnsettled)
	}
	require.NoError(t, l.client.HSet(t.Context(), banned, ":"+m, "hidden", "version", "y").Err())
	require.Len(t, l.pages(t, sn, func() {}), 3)
}

func TestAWindowThatIsSealedWhileItIsReadIsBegunAnew(t *testing.T) {
	for name, does := range map[string]func(t *testing.T, l *snapLog, p *SnapshotPage){
		"sealed": func(t *testing.T, l *snapLog, p *SnapshotPage) {
			words := strings.Fields(p.Listing)
			l.list(t, p.Window, strings.Join(slices.Insert(words, len(words)-1, "=1"), " "))
		},
		"sealed, and reopened": func(t *testing.T, l *snapLog, p *SnapshotPage) { // it is listed as it was
			require.NoError(t, l.client.HSet(t.Context(), l.store.keys.Final(), p.Window, "1 1700000000000000 reopened 1700000000000 x").Err())
		},
	} {
		t.Run(name, func(t *testing.T) { isBegunAnew(t, does) })
	}
}

func isBegunAnew(t *testing.T, meanwhile func(t *testing.T, l *snapLog, p *SnapshotPage)) {
	t.Helper()
	smallPages(t, 10)
	l := newSnapLog(t, fixed(t), 600, 3000)
	for !l.done() {
		l.step(t)
	}
	sn, err := l.store.BeginSnapshot(t.Context(), time.Minute)
	require.NoError(t, err)
	windows, begun, n := l.store.keys.Windows(), map[string]int{}, 0
	rows := map[string]bool{}
	for p, err := range sn.Pages(t.Context(), 0) {
		require.NoError(t, err)
		if p.First {
			begun[p.Window]++
			if n > 0 {
				clear(rows)
			}
		}
		for _, r := range p.Rows {
			rows[r.Member] = true
		}
		if n++; n == 5 {
			meanwhile(t, l, p)
		}
	}
	require.Len(t, rows, len(l.want()))
	names := slices.Sorted(maps.Keys(begun))
	require.Equal(t, []int{2, 1, 1}, []int{begun[names[0]], begun[names[1]], begun[names[2]]}, "%s", windows)
}

func TestAWindowThatIsDroppedWhileItIsReadIsGone(t *testing.T) {
	smallPages(t, 10)
	l := newSnapLog(t, fixed(t), 600, 3000)
	for !l.done() {
		l.step(t)
	}
	sn, err := l.store.BeginSnapshot(t.Context(), time.Minute)
	require.NoError(t, err)
	n, gone, whole := 0, "", map[string]bool{}
	for p, err := range sn.Pages(t.Context(), 0) {
		require.NoError(t, err)
		whole[p.Window] = !p.Gone
		if p.Gone {
			gone = p.Window
		}
		if n++; n == 5 {
			require.NoError(t, l.client.HDel(t.Context(), l.store.keys.Windows(), p.Window).Err())
			require.NoError(t, l.client.HSet(t.Context(), l.store.keys.Dropped(), p.Window, "x").Err())
		}
	}
	require.Len(t, whole, 3)
	require.False(t, whole[gone])
	b, err := sn.End(t.Context())
	require.NoError(t, err)
	require.Contains(t, b.Dropped, gone)
}

// A window was read as gone, since it was dropped, and Redis went back to before that: it is there again, and
// on no page. Likewise where the listing itself was evicted.
func TestASnapshotThatLacksAWindowThatWasNeitherDroppedNorIsOverIsNoWhole(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile, then func(t *testing.T, l *snapLog, window, listing string)
	}{
		"Redis went back to before it was dropped": {
			func(t *testing.T, l *snapLog, window, _ string) {
				require.NoError(t, l.client.HDel(t.Context(), l.store.keys.Windows(), window).Err())
				require.NoError(t, l.client.HSet(t.Context(), l.store.keys.Dropped(), window, "4102444800000").Err())
			},
			func(t *testing.T, l *snapLog, window, listing string) {
				require.NoError(t, l.client.HSet(t.Context(), l.store.keys.Windows(), window, listing).Err())
				l.del(t, l.store.keys.Dropped())
			},
		},
		"the listing is lost": {
			func(t *testing.T, l *snapLog, _, _ string) { l.del(t, l.store.keys.Windows()) },
			func(*testing.T, *snapLog, string, string) {},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newSnapLog(t, fixed(t), 20, 100)
			l.step(t)
			listed := l.client.HGetAll(t.Context(), l.store.keys.Windows()).Val()
			last := slices.Max(slices.Collect(maps.Keys(listed)))
			sn, err := l.store.BeginSnapshot(t.Context(), time.Minute)
			require.NoError(t, err)
			_, err = pagesUntil(t, sn, func(n int) {
				if n == 1 {
					c.meanwhile(t, l, last, listed[last])
				}
			})
			require.NoError(t, err)
			c.then(t, l, last, listed[last])
			_, err = sn.End(t.Context())
			require.ErrorIs(t, err, ErrSnapshotLost)
			require.ErrorContains(t, err, " was gone, and is neither dropped nor over")
		})
	}
}

// pagesUntil reads pages until an error.
func pagesUntil(t testing.TB, sn *Snapshot, after func(n int)) (n int, err error) {
	t.Helper()
	for _, err := range sn.Pages(t.Context(), 0) {
		if err != nil {
			return n, err
		}
		n++
		after(n)
	}
	return n, nil
}

func TestWhatEndsASnapshot(t *testing.T) {
	smallPages(t, 10)
	for name, c := range map[string]struct {
		does func(t *testing.T, l *snapLog)
		is   func(t *testing.T, err error)
	}{
		"Redis went back": {
			func(t *testing.T, l *snapLog) { l.del(t, l.store.keys.Snapshot()) },
			func(t *testing.T, err error) { require.ErrorIs(t, err, ErrSnapshotLost) },
		},
		"another is read": {
			func(t *testing.T, l *snapLog) {
				require.NoError(t, l.client.Set(t.Context(), l.store.keys.Snapshot(), "other", 0).Err())
			},
			func(t *testing.T, err error) { require.ErrorIs(t, err, ErrSnapshotLost) },
		},
		"a rebuild": {
			func(t *testing.T, l *snapLog) {
				require.NoError(t, l.client.Set(t.Context(), l.store.keys.Rebuild(), "x", 0).Err())
			},
			func(t *testing.T, err error) { require.ErrorIs(t, err, ErrRebuilding) },
		},
		"another schema": {
			func(t *testing.T, l *snapLog) {
				require.NoError(t, l.client.Set(t.Context(), l.store.keys.Schema(), `{"moved":5}`, 0).Err())
			},
			func(t *testing.T, err error) {
				var other *SchemaError
				require.ErrorAs(t, err, &other)
			},
		},
		"a torn piece": {
			func(t *testing.T, l *snapLog) {
				require.NoError(t, l.client.HSet(t.Context(), l.store.keys.Ledger(), "events/3", "torn:1").Err())
			},
			func(t *testing.T, err error) { require.ErrorIs(t, err, ledger.ErrTorn) },
		},
		"a ledger that is lost": {
			func(t *testing.T, l *snapLog) { l.del(t, l.store.keys.Ledger()) },
			func(t *testing.T, err error) { require.ErrorContains(t, err, "events/3 has no position any more") },
		},
		"a window whose key is gone": {
			func(t *testing.T, l *snapLog) { l.del(t, l.key(0)); l.del(t, l.key(1)); l.del(t, l.key(2)) },
			func(t *testing.T, err error) { require.ErrorContains(t, err, "lost a key") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newSnapLog(t, fixed(t), 600, 2000)
			for !l.done() {
				l.step(t)
			}
			sn, err := l.store.BeginSnapshot(t.Context(), time.Minute)
			require.NoError(t, err)
			n, err := pagesUntil(t, sn, func(n int) {
				if n == 5 {
					c.does(t, l)
				}
			})
			require.Equal(t, 5, n)
			c.is(t, err)
		})
	}
}

func TestASnapshotThatLostItsTokenInTheEndIsNoWhole(t *testing.T) {
	l := newSnapLog(t, fixed(t), 20, 100)
	l.step(t)
	sn, err := l.store.BeginSnapshot(t.Context(), time.Minute)
	require.NoError(t, err)
	_, err = pagesUntil(t, sn, func(int) {})
	require.NoError(t, err)
	l.del(t, l.store.keys.Snapshot())
	_, err = sn.End(t.Context())
	require.ErrorIs(t, err, ErrSnapshotLost)
}

func TestOneSnapshotIsReadAtATimeAndItsLeaseEnds(t *testing.T) {
	l := newSnapLog(t, fixed(t), 20, 100)
	l.step(t)
	sn, err := l.store.BeginSnapshot(t.Context(), time.Minute)
	require.NoError(t, err)
	_, err = l.store.BeginSnapshot(t.Context(), time.Minute)
	require.ErrorIs(t, err, ErrSnapshotBusy)
	left := l.client.PTTL(t.Context(), l.store.keys.Snapshot()).Val()
	require.Greater(t, left, 50*time.Second)
	sn.Close(t.Context())
	other, err := l.store.BeginSnapshot(t.Context(), time.Minute)
	require.NoError(t, err)
	sn.Close(t.Context()) // that isn't its own any more
	_, err = other.Look(t.Context())
	require.NoError(t, err)
}

func TestAShardWithoutALedgerHasNoSnapshot(t *testing.T) {
	f := newFixture(t, fixed(t).client, "nothing-is-there")
	_, err := f.store.BeginSnapshot(t.Context(), time.Minute)
	var other *SchemaError
	require.ErrorAs(t, err, &other)
}

// A page is read with its ledger in one call, and says so by its arguments alone: what a piece that is
// sent at the same time does is in both or in neither.
func TestPagesAndPiecesThatRunAtTheSameTimeFitTogether(t *testing.T) {
	scans(t)
	smallPages(t, 25)
	l := newSnapLog(t, fixed(t), 900, 12000)
	for l.at.From < 3000 {
		l.step(t)
	}
	applied, stop := make(chan error, 1), make(chan struct{})
	go func() {
		var err error
		for err == nil && !l.done() {
			select {
			case <-stop:
				applied <- nil
				return
			default:
				err = l.send(t.Context())
			}
		}
		applied <- err
	}()
	begin, rows := l.read(t, func() {})
	close(stop)
	require.NoError(t, <-applied)
	positions := map[ledger.Position]bool{}
	for _, r := range rows {
		for _, row := range r {
			positions[row.at] = true
		}
	}
	require.Greater(t, len(positions), 5)
	l.restores(t, begin, rows)
}

func TestASnapshotHoldsRedisForLittle(t *testing.T) {
	require.Equal(t, 500, snapshotRows)
	require.Contains(t, lua.Snapshot.Source, "COUNT")
	l := newSnapLog(t, fixed(t), 5000, 5000)
	for !l.done() {
		l.step(t)
	}
	most := 0
	sn, err := l.store.BeginSnapshot(context.Background(), time.Minute)
	require.NoError(t, err)
	for p, err := range sn.Pages(t.Context(), 0) {
		require.NoError(t, err)
		most = max(most, len(p.Rows))
	}
	require.Less(t, most, 1000)
}
