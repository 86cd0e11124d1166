package shadow

// The windows that a rebuild replaces, keeps and refuses, and those shown as incomplete afterwards.

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/rankingtest"
	"github.com/standings/standings/test/testenv"
)

// since returns a fixture and a rebuild whose shadow was read from a time in the current month: the week is
// replaced, and the month and the year are kept.
func since(t *testing.T) (*fixture, *Rebuild, int64) {
	t.Helper()
	f := newFixture(t, testenv.RedisClient(t), testenv.Prefix(t))
	begun, err := f.Store.Begin(t.Context(), []ledger.StartPosition{{Partition: ledger.Partition{Topic: "events", Number: 3}, At: ledger.At(0), Origin: &ledger.Origin{}}})
	require.NoError(t, err)
	require.Equal(t, ledger.Began, begun)
	// The week starts after its month, and the month after its year, whatever today's date is.
	from := f.Now - 3_600_000
	f.Piece.Windows[0].Start, f.Piece.Windows[0].End, f.Piece.Windows[0].Name = from, from+7*day, "a-week"
	f.Piece.Windows[1].Start, f.Piece.Windows[1].End = from-day, from+20*day
	f.Piece.Windows[2].Start, f.Piece.Windows[2].End = from-2*day, from+300*day
	f.Add(t, f.Member("u1", 10))
	r, err := Lock(t.Context(), f.Store, "me", lease)
	require.NoError(t, err)
	begun, err = r.Shadow().Begin(t.Context(), []ledger.StartPosition{{Partition: ledger.Partition{Topic: "events", Number: 3}, At: ledger.At(5), Origin: &ledger.Origin{Offset: 5, Time: from}}})
	require.NoError(t, err)
	require.Equal(t, ledger.Began, begun)
	p := f.Piece
	p.Expected, p.Next = ledger.At(5), ledger.At(f.Next)
	p.Groups = []ledger.Group{{Windows: []int{0, 1, 2}, Members: []ledger.Member{f.Member("u1", 7)}}}
	a, _, err := r.Shadow().Apply(t.Context(), &p)
	require.NoError(t, err)
	require.Equal(t, ledger.Applied, a.Outcome)
	return f, r, from
}

func fatesOf(p *Plan) string {
	var all []string
	for _, w := range p.Windows {
		text := w.Period + " " + w.Action.String()
		if w.Incomplete {
			text += " incomplete"
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

func (f *fixture) origin(t *testing.T) string {
	t.Helper()
	text, err := f.Client.HGet(t.Context(), f.Store.Keys().Origin(), "events/3").Result()
	require.NoError(t, err)
	return text
}

func TestWindowsThatTheLogHasNotWhollyAreKeptAndNamed(t *testing.T) {
	f, r, from := since(t)
	f.held(t, r)
	p, err := r.Swap(t.Context(), Choice{})
	require.NoError(t, err)
	require.Equal(t, "monthly kept, weekly replaced, yearly kept", fatesOf(p))
	require.Equal(t, from, p.From)
	require.Equal(t, "it starts before "+time.UnixMilli(from).UTC().Format(time.RFC3339)+", from when on the log was read", p.Windows[0].Why)
	score := func(n int) float64 { return f.Client.ZScore(t.Context(), f.Key(n), "u1").Val() }
	require.InDelta(t, 7, score(0), 1)
	require.InDelta(t, 10, score(1), 1)
	require.InDelta(t, 10, score(2), 1)
	require.Equal(t, "0 0", f.origin(t), "what is kept is complete, and what is replaced too")
	f.MustApply(t)
}

// What the log cannot restore to its beginning is refused, unless the operator accepts it. It is then kept
// or replaced in part, and shown as incomplete.
func TestWhatCannotBeRestoredIsRefusedUnlessThatIsAccepted(t *testing.T) {
	for name, c := range map[string]struct {
		damage  func(f *fixture)
		says    string
		then    string
		lacking []int // the windows that are then shown as incomplete
		points  []float64
	}{
		"a torn ledger": {func(f *fixture) { f.field(t, f.Store, "events/3", "torn:10") },
			"a piece of events/3 was written in part, and the log doesn't reach back to the beginning of global:monthly:",
			"monthly kept incomplete, weekly replaced, yearly kept incomplete", []int{1, 2}, []float64{7, 10, 10}},
		"a lost ledger": {func(f *fixture) { f.Del(t, f.Store.Keys().Ledger()) },
			"the ledger is lost, so the events that the boards contain are unknown",
			"monthly kept incomplete, weekly replaced, yearly kept incomplete", []int{1, 2}, []float64{7, 10, 10}},
		"a lost board": {func(f *fixture) { f.Del(t, f.Key(1)) }, "Redis has lost global:monthly:",
			"monthly replaced incomplete, weekly replaced, yearly kept", []int{1, 2}, []float64{7, 7, 10}},
		"a board that isn't listed": {func(f *fixture) { f.Client.HDel(t.Context(), f.Store.Keys().Windows(), f.Piece.Windows[1].Listing()) },
			"Redis has the keys of global:monthly:", "monthly replaced incomplete, weekly replaced, yearly kept", []int{1, 2}, []float64{7, 7, 10}},
	} {
		t.Run(name, func(t *testing.T) {
			f, r, from := since(t)
			f.held(t, r)
			c.damage(f)
			f.Unchanged(t, func() {
				_, err := r.Swap(t.Context(), Choice{})
				require.ErrorAs(t, err, new(*RefusedError))
				require.ErrorContains(t, err, c.says)
				require.ErrorContains(t, err, "--accept-incomplete")
				if strings.Contains(name, "ledger") {
					_, err = r.Swap(t.Context(), Choice{Boards: []string{"global"}, AcceptIncomplete: true})
					require.ErrorContains(t, err, "can't be settled for some boards only")
				}
			})
			p, err := r.Swap(t.Context(), Choice{AcceptIncomplete: true})
			require.NoError(t, err)
			require.Equal(t, c.then, fatesOf(p))
			require.Equal(t, fmt.Sprint("5 ", from), f.origin(t))
			for n, points := range c.points {
				require.InDelta(t, points, f.Client.ZScore(t.Context(), f.Key(n), "u1").Val(), 1)
				require.Equal(t, slices.Contains(c.lacking, n), f.shownIncomplete(t, f.Piece.Windows[n].Start), "window %d", n)
			}
			f.MustApply(t)
		})
	}
}

func TestOtherBoardsAndWhatIsOverAreLeftAlone(t *testing.T) {
	f, r := rebuilding(t)
	now := time.Now().UnixMilli()
	f.list(t, f.Store, "eu:weekly:x", rankingtest.Listed(now-1000, now+1000, now+day))
	f.list(t, f.Store, "global:weekly:over", rankingtest.Listed(now-100*day, now-93*day, now-1000))
	// Alive by its listing, but over by today's retention of 60 days.
	f.list(t, f.Store, "global:weekly:longer", rankingtest.Listed(now-100*day, now-93*day, now+day))
	require.NoError(t, f.Client.ZAdd(t.Context(), f.Store.Keys().Listed("global:weekly:longer"), redis.Z{Score: 1, Member: "u"}).Err())
	p, err := r.Plan(t.Context(), Choice{Boards: []string{"global"}})
	require.NoError(t, err)
	byName := map[string]Planned{}
	for _, w := range p.Windows {
		byName[w.Name] = w
	}
	require.Equal(t, "its board isn't to be rebuilt", byName["x"].Why)
	require.Equal(t, Kept, byName["x"].Action)
	require.NotContains(t, byName, "over")
	require.Equal(t, "periods.weekly.retention was longer when it began", byName["longer"].Why)
	require.Equal(t, Kept, byName["longer"].Action)
	require.Len(t, p.Windows, 5)
	require.Empty(t, p.Refused)
}

func TestAListingIsHealedWhereItsBoundsAreOthersAndKeptWhereTheyAreNot(t *testing.T) {
	f, r := rebuilding(t)
	f.held(t, r)
	w, v := f.Piece.Windows[0], f.Piece.Windows[1]
	healed, kept := f.Listing(t, w), rankingtest.Entry(v, v.End+day)
	f.list(t, f.Store, w.Listing(), rankingtest.Listed(w.Start+1000, w.End, w.End+day))
	f.list(t, f.Store, v.Listing(), kept)
	_, err := r.Swap(t.Context(), Choice{})
	require.NoError(t, err)
	require.Equal(t, healed, f.Listing(t, w))
	require.Equal(t, kept, f.Listing(t, v), "another retention holds for new windows")
	f.ExpiresAt(t, f.Key(1), v.End+2*day)
	f.MustApply(t)
}

// longer lists a window that is alive by its listing, but over by today's retention of 60 days. It returns
// the window's start, Unix ms.
func (f *fixture) longer(t *testing.T) (name string, start int64) {
	t.Helper()
	now := time.Now().UnixMilli()
	name, start = "global:weekly:longer", now-100*day
	f.list(t, f.Store, name, rankingtest.Listed(start, start+7*day, now+day))
	return name, start
}

// shownIncomplete reports whether readers show a window that starts at start as incomplete.
func (f *fixture) shownIncomplete(t *testing.T, start int64) bool {
	t.Helper()
	all, err := incomplete(map[string]string{"events/3": f.origin(t)}, start)
	require.NoError(t, err)
	return len(all) > 0
}

func TestWhatIsKeptForALongerRetentionStaysIncomplete(t *testing.T) {
	f, r := rebuilding(t)
	name, start := f.longer(t)
	require.NoError(t, f.Client.ZAdd(t.Context(), f.Store.Keys().Listed(name), redis.Z{Score: 1, Member: "u"}).Err())
	require.NoError(t, f.Client.HSet(t.Context(), f.Store.Keys().Origin(), "events/3", fmt.Sprint("5 ", start+day)).Err())
	require.True(t, f.shownIncomplete(t, start))
	f.held(t, r)
	p, err := r.Swap(t.Context(), Choice{})
	require.NoError(t, err)
	require.Contains(t, fatesOf(p), "weekly kept")
	require.True(t, f.shownIncomplete(t, start))
	require.Equal(t, fmt.Sprint("0 ", start+1), f.origin(t), "and no other is")
}

func TestWhatIsLostOfALongerRetentionIsDroppedIfThatIsAccepted(t *testing.T) {
	f, r := rebuilding(t)
	name, _ := f.longer(t)
	require.NoError(t, f.Client.HSet(t.Context(), f.Store.Keys().Origin(), "events/3", "0 0").Err())
	f.held(t, r)
	f.Unchanged(t, func() {
		_, err := r.Swap(t.Context(), Choice{})
		require.ErrorContains(t, err, "Redis has lost global:weekly:longer, and the log isn't read for what is over by today's retention: to have them dropped")
	})
	p, err := r.Swap(t.Context(), Choice{AcceptIncomplete: true})
	require.NoError(t, err)
	require.Contains(t, fatesOf(p), "weekly dropped")
	require.False(t, f.Client.HExists(t.Context(), f.Store.Keys().Windows(), name).Val())
	require.Equal(t, "0 0", f.origin(t), "nothing else lacks anything")
	f.MustApply(t)
}

// Trying again would not help.
func TestAnOriginThatIsNoneAndALedgerWithoutASchemaAreForAPersonToMend(t *testing.T) {
	f, r := rebuilding(t)
	require.NoError(t, f.Client.HSet(t.Context(), f.Store.Keys().Origin(), "events/3", "x").Err())
	_, err := r.Plan(t.Context(), Choice{})
	require.ErrorContains(t, err, "the origin of events/3")
	require.Equal(t, ledger.Halt, Classify(err))
	f.Del(t, f.Store.Keys().Origin())
	f.Del(t, f.Store.Keys().Schema())
	_, err = r.Plan(t.Context(), Choice{})
	require.ErrorContains(t, err, "or delete "+f.Store.Keys().Ledger()+":")
	require.Equal(t, ledger.Halt, Classify(err))
}

// For any origins and any damage of the shard: replaced windows are shown as complete, kept windows that
// were incomplete stay so, and windows that may lack events now are shown as incomplete.
func TestOriginsSayWhatIsCompleteAfterwards(t *testing.T) {
	const kept, now = 3, 9 // retention in ms, and the current time
	r := &Rebuild{live: newFixture(t, redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}), "lb").StoreOf(t, func(c *ranking.Config) {
		c.Periods = map[periods.Period]ranking.Period{periods.Weekly: {Retention: kept * time.Millisecond}}
	})}
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.Int64Range(0, 6)
		p := &Plan{Live: map[string]string{}, Shadow: map[string]string{}}
		was, read := map[string]ledger.Origin{}, map[string]ledger.Origin{}
		p.Orphaned = rapid.Bool().Draw(t, "orphaned")
		for i := range rapid.IntRange(1, 3).Draw(t, "partitions") {
			field := fmt.Sprint("t/", i)
			read[field] = ledger.Origin{Offset: 1, Time: at.Draw(t, "read since")}
			p.From = max(p.From, read[field].Time)
			if rapid.Bool().Draw(t, "has an origin") {
				was[field] = ledger.Origin{Offset: 2, Time: at.Draw(t, "was since")}
			}
			if !p.Orphaned && rapid.Bool().Draw(t, "torn") {
				p.Torn = append(p.Torn, field)
			}
		}
		all := Choice{AcceptIncomplete: true}
		for i := range rapid.IntRange(0, 4).Draw(t, "windows") {
			start := at.Draw(t, "start")
			name, live, shadow := fmt.Sprint("global:weekly:", i), "", ""
			if rapid.Bool().Draw(t, "listed") {
				live = rankingtest.Listed(start, start+1, now+1)
			}
			if start+1+kept > now && (live == "" || rapid.Bool().Draw(t, "in the log")) {
				shadow = rankingtest.Listed(start, start+1, start+1+kept)
			}
			if live == "" && shadow == "" {
				continue
			}
			w, ok, err := r.actionOf(p, all, name, live, shadow, map[string]bool{name: rapid.Bool().Draw(t, "there")}, now)
			require.NoError(t, err)
			require.True(t, ok)
			p.Windows = append(p.Windows, w)
		}
		p.refuse(all)
		require.Empty(t, p.Refused)
		// A window that is kept for a longer retention and shown as incomplete makes earlier windows
		// incomplete too.
		longest := int64(-1)
		for _, w := range p.Windows {
			if w.Action == Kept && w.over {
				longest = max(longest, w.Start)
			}
		}
		then := map[string]string{}
		for field, o := range was {
			then[field] = o.String()
		}
		counted := map[string]string{"t/0": "1"} // a partition without an origin lacks the same as the others
		before := ledger.State{Origins: maps.Clone(then), Since: map[string]int64{}, Ledger: counted}
		if rapid.Bool().Draw(t, "the period was added") {
			before.Since[rapid.SampledFrom([]string{"weekly", "global:weekly", "*:weekly"}).Draw(t, "to")] = at.Draw(t, "counted since")
			if rapid.Bool().Draw(t, "twice") {
				before.Since["global:weekly"] = at.Draw(t, "counted since, too")
			}
		}
		after := ledger.State{Origins: then, Since: maps.Clone(before.Since), Ledger: counted}
		for field, text := range p.newOrigins(all, was, read) {
			then[field] = text
		}
		maps.Copy(after.Since, p.newSince(all, before.Since))
		for _, w := range p.Windows {
			lacked, err := ranking.Incomplete(&before, w.Board, w.Period, w.Start)
			require.NoError(t, err)
			lacks, err := ranking.Incomplete(&after, w.Board, w.Period, w.Start)
			require.NoError(t, err)
			switch {
			case w.Incomplete:
				require.NotEmpty(t, lacks, "it may lack events: %+v", w)
			case w.Action == Kept && len(lacked) > 0:
				require.NotEmpty(t, lacks, "it lacked events before: %+v", w)
			case w.Action == Replaced && w.Start > longest:
				require.Empty(t, lacks, "the log had all of it: %+v", w)
			}
			if w.Action == Kept && slices.Equal(lacked, nil) && !w.Incomplete && len(p.Torn) == 0 && !p.Orphaned && !slices.ContainsFunc(p.Windows, func(w Planned) bool { return w.Incomplete }) {
				require.Empty(t, lacks, "nothing has changed: %+v", w)
			}
		}
	})
}
