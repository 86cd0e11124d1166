package ranking

// A naive model of apply in maps. A test compares the store with it after every step.

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/test/testenv"
)

// model is the content of a shard.
type model struct {
	ledger  string
	held    bool
	listing map[string]string
	expires map[string]int64
	boards  map[string]map[string]vector
	rules   map[string]Period
	names   map[string]called
}

// called is a member's name, the time of its event, and until when it is kept.
type called struct {
	time, until int64
	name        string
}

// apply implements the design literally.
func (m *model) apply(p *ledger.Piece, now int64, check bool) ledger.Answer {
	if m.ledger != p.Expected.String() {
		if m.ledger == p.Next.String() && !check {
			return ledger.Answer{Outcome: ledger.Applied}
		}
		return ledger.Answer{Outcome: ledger.Moved, Found: m.ledger}
	}
	if m.held {
		return ledger.Answer{Outcome: ledger.Held}
	}
	type place struct{ window, member string }
	sums := map[place]vector{}
	var over []ledger.Refusal
	for _, g := range p.Groups {
		for _, n := range g.Windows {
			w := p.Windows[n]
			rule := m.rules[w.Period]
			if now >= w.End+rule.Retention.Milliseconds() {
				continue
			}
			for _, member := range g.Members {
				sum := vector{member.Points, rule.Layout.Ticks(w.Start, w.End, member.Time)}
				if had, ok := m.boards[w.Listing()][string(member.ID)]; ok {
					sum = vector{sum.points + had.points, min(sum.ticks, had.ticks)}
				}
				if _, err := rule.Layout.Encode(sum.points, sum.ticks); err != nil && !slices.Contains(over, ledger.Refusal{Member: string(member.ID), Reason: ledger.Overflow}) {
					over = append(over, ledger.Refusal{Member: string(member.ID), Reason: ledger.Overflow})
				}
				sums[place{w.Listing(), string(member.ID)}] = sum
			}
		}
	}
	if over != nil {
		return ledger.Answer{Outcome: ledger.Refusing, Refused: over}
	}
	if check {
		return ledger.Answer{Outcome: ledger.Fits}
	}
	for _, g := range p.Groups {
		for i, name := range g.Names {
			m.name(p, &g, string(g.Members[i].ID), name, now)
		}
	}
	for at, sum := range sums {
		if m.boards[at.window] == nil {
			m.boards[at.window] = map[string]vector{}
		}
		m.boards[at.window][at.member] = sum
	}
	for _, w := range p.Windows {
		if m.boards[w.Listing()] != nil {
			expires := w.End + m.rules[w.Period].Retention.Milliseconds()
			m.listing[w.Listing()] = entry(w.Start, w.End, expires)
			m.expires[w.Listing()] = expires + day
		}
	}
	m.ledger = p.Next.String()
	return ledger.Answer{Outcome: ledger.Applied}
}

// name sets a member's name if one of the group's windows isn't over.
func (m *model) name(p *ledger.Piece, g *ledger.Group, id string, name ledger.Name, now int64) {
	until := int64(0)
	for _, n := range g.Windows {
		if over := p.Windows[n].End + m.rules[p.Windows[n].Period].Retention.Milliseconds(); now < over {
			until = max(until, over)
		}
	}
	is := m.names[id]
	if until == 0 || is.name == "" && len(name.Text) == 0 {
		return
	}
	is.until = max(is.until, until)
	if text := string(name.Text); text != "" && (is.name == "" || name.Time > is.time || name.Time == is.time && text > is.name) {
		is.time, is.name = name.Time, text
	}
	if m.names == nil {
		m.names = map[string]called{}
	}
	m.names[id] = is
}

// draw returns a piece over some of the windows. A member occurs at most once in a window.
func draw(t *rapid.T, windows []ledger.Window, at ledger.Position) ledger.Piece {
	p := ledger.Piece{Partition: ledger.Partition{Topic: "events", Number: 3}, Expected: at}
	p.Windows = rapid.SliceOfNDistinct(rapid.SampledFrom(windows), 0, len(windows), ledger.Window.Listing).Draw(t, "windows")
	met := map[string]bool{}
	for range rapid.IntRange(0, 3).Draw(t, "groups") {
		var g ledger.Group
		for n := range p.Windows {
			if rapid.Bool().Draw(t, "in") {
				g.Windows = append(g.Windows, n)
			}
		}
		for _, id := range rapid.SliceOfNDistinct(rapid.IntRange(0, 9), 0, 10, rapid.ID).Draw(t, "ids") {
			meets := slices.ContainsFunc(g.Windows, func(n int) bool { return met[fmt.Sprint(id, n)] })
			if meets || len(g.Windows) == 0 {
				continue
			}
			latest, earliest := int64(1<<62), int64(0)
			for _, n := range g.Windows {
				met[fmt.Sprint(id, n)] = true
				latest, earliest = min(latest, p.Windows[n].End-1), max(earliest, p.Windows[n].Start)
			}
			g.Members = append(g.Members, ledger.Member{
				ID:     []byte(strconv.Itoa(id)),
				Points: rapid.OneOf(rapid.Int64Range(-40, 60), rapid.Int64Range(-1001, 1001)).Draw(t, "points"),
				Time:   rapid.OneOf(rapid.Just(int64(ledger.NoTime)), rapid.Int64Range(min(earliest, latest)-5, latest)).Draw(t, "time"),
			})
		}
		p.Groups = append(p.Groups, g)
	}
	if rapid.Bool().Draw(t, "named") {
		for i := range p.Groups {
			for range p.Groups[i].Members {
				p.Groups[i].Names = append(p.Groups[i].Names, ledger.Name{
					Text: []byte(rapid.SampledFrom([]string{"", "a", "ab", "B", "é", "\x00 1", "5 5"}).Draw(t, "name")), Time: rapid.Int64Range(0, 4).Draw(t, "said at"),
				})
			}
		}
	}
	p.Next = ledger.At(at.To + rapid.Int64Range(1, 9).Draw(t, "on"))
	if rapid.Bool().Draw(t, "sweep") {
		p.Next = ledger.Position{From: at.From, To: max(at.To, at.From+5), Hash: at.Hash + rapid.Uint64Range(1, 9).Draw(t, "hash")}
	}
	return p
}

func TestTheStoreIsTheModel(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			client, prefix, n := testenv.RedisClient(t), testenv.Prefix(t), 0
			rapid.Check(t, func(t *rapid.T) {
				n++
				f := newFixture(t, client, fmt.Sprint(prefix, n))
				f.use(t, kind, 1000)
				f.begin(t)
				m := &model{
					ledger: "0", listing: map[string]string{}, expires: map[string]int64{},
					boards: map[string]map[string]vector{}, rules: f.store.periods,
				}
				windows := append(f.newPiece().Windows, f.past("before", time.Hour), f.past("over", retention+time.Hour))
				for _, w := range f.newPiece().Windows {
					w.Board = "eu"
					windows = append(windows, w)
				}
				at := ledger.At(0)
				for range rapid.IntRange(1, 8).Draw(t, "pieces") {
					expected := at
					if rapid.IntRange(0, 5).Draw(t, "stale") == 0 {
						expected = ledger.At(rapid.Int64Range(0, 30).Draw(t, "expected"))
					}
					f.piece = draw(t, windows, expected)
					if m.held = rapid.IntRange(0, 9).Draw(t, "held") == 0; m.held {
						require.NoError(t, client.Set(t.Context(), f.store.keys.Hold(), "token", time.Minute).Err())
					} else {
						require.NoError(t, client.Del(t.Context(), f.store.keys.Hold()).Err())
					}
					for range rapid.IntRange(1, 2).Draw(t, "times") { // twice, as after a lost answer
						for _, check := range []bool{true, false} {
							call := f.apply
							if check {
								call = f.check
							}
							want, got := m.apply(&f.piece, time.Now().UnixMilli(), check), call(t)
							require.ElementsMatch(t, want.Refused, got.Refused)
							want.Refused, got.Refused = nil, nil
							require.Equal(t, want, got)
							f.is(t, m, windows)
						}
					}
					var err error
					at, err = ledger.Parse(m.ledger)
					require.NoError(t, err)
				}
			})
		})
	}
}

// is requires that the store has exactly the model's content.
func (f *fixture) is(t tester, m *model, windows []ledger.Window) {
	t.Helper()
	position, err := f.store.Position(t.Context(), ledger.Partition{Topic: "events", Number: 3})
	require.NoError(t, err)
	require.Equal(t, m.ledger, position)
	listing, err := f.client.HGetAll(t.Context(), f.store.keys.Windows()).Result()
	require.NoError(t, err)
	require.Equal(t, m.listing, listing)
	names, err := f.client.HGetAll(t.Context(), f.store.keys.Names()).Result()
	require.NoError(t, err)
	require.Len(t, names, len(m.names))
	for id, is := range m.names {
		require.Equal(t, fmt.Sprintf("%d %d %s", is.time, is.until, is.name), names[id], "%q", id)
	}
	for _, w := range windows {
		key := f.store.keys.Window(&w)
		rows, err := f.client.ZRangeWithScores(t.Context(), key, 0, -1).Result()
		require.NoError(t, err)
		require.Len(t, rows, len(m.boards[w.Listing()]))
		for _, z := range rows {
			points, ticks, err := m.rules[w.Period].Layout.Decode(z.Score)
			require.NoError(t, err)
			require.Equal(t, vector{points, ticks}, m.boards[w.Listing()][z.Member.(string)], "%v in %s", z.Member, key)
		}
		if len(rows) > 0 {
			f.expiresAt(t, key, m.expires[w.Listing()])
		}
	}
}
