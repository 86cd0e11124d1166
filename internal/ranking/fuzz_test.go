package ranking

// Fuzzes pieces, and the arguments of apply.lua.

import (
	"encoding"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking/lua"
	"github.com/standings/standings/internal/redisconn"
	"github.com/standings/standings/test/simulate/redissim"
)

// dice draws choices from a fuzzer's bytes, and zeros after the last byte.
type dice struct{ rest []byte }

func (d *dice) bytes(n int) []byte {
	n = min(n, len(d.rest))
	taken := d.rest[:n]
	d.rest = d.rest[n:]
	return taken
}

func (d *dice) below(n int) int {
	b := d.bytes(1)
	if len(b) == 0 {
		return 0
	}
	return int(b[0]) % n
}

// number returns a small number, or any of 64 bits.
func (d *dice) number() int64 {
	if d.below(4) > 0 {
		return int64(d.below(256)) - 100
	}
	var b [8]byte
	copy(b[:], d.bytes(8))
	return int64(binary.BigEndian.Uint64(b[:]))
}

// piece draws a piece as ingest could send it: windows of the calendar, and any members.
func (d *dice) piece(t testing.TB) ledger.Piece {
	t.Helper()
	var calendar periods.Calendar
	p := ledger.Piece{
		Partition: ledger.Partition{Topic: string(d.bytes(d.below(8))), Number: d.below(200)},
		Expected:  ledger.At(int64(d.below(256))), Next: ledger.Position{From: 256, To: 300, Hash: uint64(d.number())},
	}
	if p.Next.Hash == 0 {
		p.Next = ledger.At(300)
	}
	kept := []periods.Period{periods.Weekly, periods.Monthly, periods.Yearly}
	for range d.below(5) {
		w, err := calendar.At(kept[d.below(3)], d.number()&(periods.MaxTime-1)/2)
		require.NoError(t, err)
		p.Windows = append(p.Windows, listed([]string{"global", "eu", "A-b.c_1"}[d.below(3)], w))
	}
	for range d.below(4) {
		var g ledger.Group
		for n := range p.Windows {
			if d.below(2) == 1 {
				g.Windows = append(g.Windows, n)
			}
		}
		for range d.below(6) {
			id := slices.Clone(d.bytes(1 + d.below(12)))
			g.Members = append(g.Members, ledger.Member{ID: append(id, 'x'), Points: d.number(), Time: d.number()})
		}
		p.Groups = append(p.Groups, g)
	}
	if d.below(2) == 1 {
		d.name(&p)
	}
	if d.below(2) == 1 {
		p.Note = &ledger.Note{Rules: ledger.Fingerprint(1 + d.below(200)), Text: string(d.bytes(d.below(9)))}
		if p.Next.Sweeping() {
			p.Next.Rules = p.Note.Rules
		}
	}
	for range d.below(3) {
		p.Without = append(p.Without, string(d.bytes(d.below(9))))
	}
	return p
}

// name draws names for a piece's members.
func (d *dice) name(p *ledger.Piece) {
	for i := range p.Groups {
		g := &p.Groups[i]
		for range g.Members {
			g.Names = append(g.Names, ledger.Name{Text: append([]byte{}, d.bytes(d.below(9))...), Time: d.number()})
		}
	}
}

// sent returns a call's arguments as they are sent to Redis.
func sent(t testing.TB, args []any) []string {
	t.Helper()
	var all []string
	for _, arg := range args {
		switch v := arg.(type) {
		case string:
			all = append(all, v)
		case []byte:
			all = append(all, string(v))
		case int:
			all = append(all, strconv.Itoa(v))
		case int64:
			all = append(all, strconv.FormatInt(v, 10))
		case encoding.BinaryMarshaler:
			text, err := v.MarshalBinary()
			require.NoError(t, err)
			all = append(all, string(text))
		default:
			t.Fatalf("an argument of type %T", arg)
		}
	}
	return all
}

// understood parses a call as the comment in apply.lua specifies. It shares no code with the encoder.
func understood(keys, argv []string) (ledger.Piece, error) {
	var p ledger.Piece
	var err error
	take := func() string {
		if len(argv) == 0 {
			err = errors.New("too few arguments")
			return ""
		}
		first := argv[0]
		argv = argv[1:]
		return first
	}
	number := func() int64 {
		n, bad := strconv.ParseInt(take(), 10, 64)
		err = errors.Join(err, bad)
		return n
	}
	list := func() (all []int64) {
		err = errors.Join(err, json.Unmarshal([]byte(take()), &all))
		return all
	}
	field := take()
	slash := strings.LastIndexByte(field, '/')
	partition, bad := strconv.Atoi(field[slash+1:])
	p.Partition, err = ledger.Partition{Topic: field[:slash], Number: partition}, errors.Join(err, bad)
	for _, at := range []*ledger.Position{&p.Expected, &p.Next} {
		found, bad := ledger.Parse(take())
		*at, err = found, errors.Join(err, bad)
	}
	take() // the schema
	take() // the lease
	take() // the maximum number of windows
	keys, beside := keys[7:], take()
	for _, what := range []string{"", "rules", "names", "rules names"} {
		if beside == what {
			keys = keys[:len(keys)-len(strings.Fields(what))]
		}
	}
	for range number() {
		p.Without = append(p.Without, take())
	}
	if strings.HasPrefix(beside, "rules") {
		by, bad := ledger.ParseFingerprint(take())
		p.Note, err = &ledger.Note{Rules: by, Text: take()}, errors.Join(err, bad)
	}
	named := strings.HasSuffix(beside, "names")
	for i := 0; i < len(keys); i += 2 {
		name := strings.Split(keys[i], ":")
		if name = name[max(0, len(name)-3):]; len(name) != 3 {
			return p, fmt.Errorf("a window called %q", name)
		}
		p.Windows = append(p.Windows, ledger.Window{Board: name[0], Period: name[1], Name: name[2], Start: number(), End: number()})
		for range 6 { // retention, layout, k, tick, max points, borders
			take()
		}
	}
	for len(argv) > 0 && err == nil {
		var g ledger.Group
		for range number() {
			g.Windows = append(g.Windows, int(number())-1)
		}
		members := number()
		points, times := list(), list()
		if int64(len(points)) != members || int64(len(times)) != members {
			return p, fmt.Errorf("%d members, %d points, %d times", members, len(points), len(times))
		}
		for i := range points {
			g.Members = append(g.Members, ledger.Member{ID: []byte(take()), Points: points[i], Time: times[i]})
		}
		if named {
			times := list()
			if int64(len(times)) != members {
				return p, fmt.Errorf("%d members, %d times of names", members, len(times))
			}
			for _, at := range times {
				g.Names = append(g.Names, ledger.Name{Text: []byte(take()), Time: at})
			}
		}
		p.Groups = append(p.Groups, g)
	}
	return p, err
}

func FuzzTheArgumentsOfApplySayWhatWasMeant(f *testing.F) {
	for _, seed := range []string{"", "\x03abc\x05\x09\x00\x02\x01\x00\x05\x02\x05\x00\x01\x02\x01\x01\x03\x04zzzz\x01\x07\x01\x09", strings.Repeat("\xff\x03\x01\x80", 60)} {
		f.Add([]byte(seed))
	}
	fixture := offlineFixture(f)
	e := &encoder{}
	f.Fuzz(func(t *testing.T, text []byte) {
		p := (&dice{text}).piece(t)
		n, err := e.encode(fixture.store, &p, p.Next.String())
		if err != nil {
			for _, g := range p.Groups { // the only reason is a time after a window's end
				for _, w := range g.Windows {
					if slices.ContainsFunc(g.Members, func(m ledger.Member) bool { return m.Time >= p.Windows[w].End }) {
						return
					}
				}
			}
			t.Fatalf("%+v is refused: %v", p, err)
		}
		all := sent(t, e.args[3:])
		got, err := understood(all[:n], all[n:])
		require.NoError(t, err)
		require.Equal(t, p, got)
		tag := "lb:{0}:"
		if of > 1 {
			tag = fixture.store.keys.tag
		}
		for i := range p.Windows {
			require.Equal(t, []string{tag + p.Windows[i].Listing(), tag + p.Windows[i].Listing() + ":hidden"}, all[7+2*i:9+2*i])
		}
	})
}

// simulated returns a fixture on an in-memory Redis that runs the real scripts.
func simulated(t tester, s *redissim.Server, clientOf *redis.Client, kind codec.Kind, most int64) *fixture {
	s.Wipe()
	f := newFixture(t, clientOf, "lb")
	f.use(t, kind, most)
	f.begin(t)
	return f
}

func simulatedRedis(f *testing.F) (*redissim.Server, *redis.Client) {
	f.Helper()
	s := redissim.New(time.Now)
	client := redisconn.NewClient(redisconn.Settings{Addresses: []string{"redis:6379"}, Timeout: time.Minute, Network: s.Dialer("fuzz")}).(*redis.Client)
	f.Cleanup(func() {
		_ = client.Close() // no call is in flight
		s.Close()
	})
	return s, client
}

// Consecutive pieces have the same effect as in the naive model. Members have any bytes, and points are
// often at the limits of the range.
func FuzzApplyIsTheModel(f *testing.F) {
	server, client := simulatedRedis(f)
	for _, n := range []int{0, 64, 512, 2048} {
		f.Add(slices.Repeat([]byte{0x5a, 1, 0, 0, 0, 0, 0, 0x80}, n/8))
	}
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		most := rapid.SampledFrom([]int64{5, 1000, 99_999_999}).Draw(t, "most")
		f := simulated(t, server, client, kind, most)
		m := &model{
			ledger: "0", listing: map[string]string{}, expires: map[string]int64{},
			boards: map[string]map[string]vector{}, rules: f.store.periods,
		}
		ids := rapid.SliceOfNDistinct(rapid.SliceOfN(rapid.Byte(), 1, 20), 1, 6, func(id []byte) string { return string(id) }).Draw(t, "members")
		windows := append(f.newPiece().Windows, f.past("before", time.Hour), f.past("over", retention+time.Hour))
		at := ledger.At(0)
		for range rapid.IntRange(1, 6).Draw(t, "pieces") {
			expected := at
			if rapid.IntRange(0, 7).Draw(t, "stale") == 0 {
				expected = ledger.At(rapid.Int64Range(0, 30).Draw(t, "expected"))
			}
			f.piece = draw(t, windows, expected)
			for g := range f.piece.Groups {
				members := f.piece.Groups[g].Members
				if len(members) > len(ids) {
					members = members[:len(ids)]
				}
				for i := range members {
					members[i].ID = ids[i]
					members[i].Points = rapid.OneOf(rapid.Just(members[i].Points), rapid.Int64Range(-most-1, most+1), rapid.Int64()).Draw(t, "points")
				}
				f.piece.Groups[g].Names = nil // the members change
				f.piece.Groups[g].Members = onceIn(f.piece.Groups[:g], f.piece.Groups[g].Windows, members)
			}
			want, got := m.apply(&f.piece, time.Now().UnixMilli(), false), f.apply(t)
			require.ElementsMatch(t, want.Refused, got.Refused)
			want.Refused, got.Refused = nil, nil
			require.Equal(t, want, got)
			f.is(t, m, windows)
			var err error
			at, err = ledger.Parse(m.ledger)
			require.NoError(t, err)
		}
	}))
}

// onceIn removes the members that an earlier group has in one of the windows.
func onceIn(before []ledger.Group, windows []int, members []ledger.Member) []ledger.Member {
	return slices.DeleteFunc(members, func(m ledger.Member) bool {
		return slices.ContainsFunc(before, func(g ledger.Group) bool {
			return slices.ContainsFunc(g.Windows, func(w int) bool { return slices.Contains(windows, w) }) &&
				slices.ContainsFunc(g.Members, func(other ledger.Member) bool { return string(other.ID) == string(m.ID) })
		})
	})
}

// Arbitrary arguments change nothing, or leave the mark of a torn ledger after the first write, or form
// another valid piece, which is applied as a whole. Every score fits the layout, whatever was sent.
func FuzzHostileArgumentsChangeNothingUnmarked(f *testing.F) {
	server, client := simulatedRedis(f)
	for _, seed := range []struct {
		at   uint16
		with string
	}{
		{0, ""}, {1, "0"}, {4, "nan"}, {5, ""}, {5, "nan"}, {5, "-1"}, {7, "-1"}, {8, "1"}, {10, "nan"}, {11, "wide"}, {12, "nan"}, {13, "nan"}, {13, "0"}, {32, "0"}, {14, "nan"}, {14, "inf"}, {15, "a"}, {15, "a,b"}, {34, "99"}, {35, "4"},
		{37, "-1"}, {37, "0x2"}, {38, "[1e999,-1]"}, {38, "[null]"}, {38, "[nan,1]"}, {39, "[nan,nan]"}, {39, "[0.5,1e300]"}, {40, "a\x00\r\n"}, {45, "[nan]"}, {46, "[-1e999]"}, {46, "{}"}, {47, ""},
	} {
		f.Add(seed.at, seed.with, true, false)
		f.Add(seed.at, seed.with, false, false)
		f.Add(seed.at, seed.with, true, true)
	}
	f.Fuzz(func(t *testing.T, at uint16, with string, wide, cut bool) {
		kind := codec.Readable
		if wide {
			kind = codec.Wide
		}
		f := simulated(t, server, client, kind, 1000)
		f.add(t, f.member("a", 5), f.member("b", 7))
		before := server.Dump()
		f.piece.Expected, f.piece.Next = ledger.At(10), ledger.At(20)
		f.piece.Groups = []ledger.Group{{Windows: []int{0, 2}, Members: []ledger.Member{f.member("a", 1), f.member("c", -3)}}, {Windows: []int{1}, Members: []ledger.Member{f.member("b", 2)}}}
		e := &encoder{}
		n, err := e.encode(f.store, &f.piece, f.piece.Next.String())
		require.NoError(t, err)
		all := sent(t, e.args[3:])
		keys, argv := all[:n], all[n:]
		argv[int(at)%len(argv)] = with
		if cut {
			argv = argv[:int(at)%len(argv)+1]
		}
		var args []any
		for _, arg := range argv {
			args = append(args, arg)
		}
		reply, err := f.store.Call(t.Context(), lua.Apply, keys, args...)
		position := client.HGet(t.Context(), keys[0], ledger.Partition{Topic: "events", Number: 3}.String()).Val()
		switch {
		case position == "torn:10":
			return // marked as torn: no worker continues
		case err != nil || len(reply) == 0 || reply[0] != "applied":
			require.Equal(t, before, server.Dump(), "%q", argv)
			return
		}
		require.Equal(t, argv[2], client.HGet(t.Context(), keys[0], argv[0]).Val())
		for _, key := range keys[7:] {
			for _, z := range client.ZRangeWithScores(t.Context(), key, 0, -1).Val() {
				require.False(t, math.IsNaN(z.Score), "%q in %s", z.Member, key)
			}
		}
	})
}
