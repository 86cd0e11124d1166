package ranking

// What a rebuild replaces, keeps and refuses, and which windows are shown as incomplete
// afterwards.

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/testenv"
)

// since is a fixture and a rebuild whose shadow was read from a time on, in the present
// month: the week is replaced, and the month and the year are kept.
func since(t *testing.T) (*fixture, *Rebuild, int64) {
	t.Helper()
	f := newFixture(t, testenv.RedisClient(t), testenv.Prefix(t))
	begun, err := f.store.Begin(t.Context(), []ledger.Beginning{{Topic: "events", Partition: 3, At: ledger.At(0), Origin: &ledger.Origin{}}})
	require.NoError(t, err)
	require.Equal(t, ledger.Began, begun)
	// A week that begins later than its month does, whatever day it is.
	from := f.now - 3_600_000
	f.piece.Windows[0].Start, f.piece.Windows[0].End, f.piece.Windows[0].Name = from, from+7*day, "a-week"
	f.piece.Windows[1].Start, f.piece.Windows[1].End = from-day, from+20*day
	f.add(t, f.member("u1", 10))
	r, err := f.store.Rebuild(t.Context(), "me", lease)
	require.NoError(t, err)
	begun, err = r.Shadow().Begin(t.Context(), []ledger.Beginning{{Topic: "events", Partition: 3, At: ledger.At(5), Origin: &ledger.Origin{Offset: 5, Time: from}}})
	require.NoError(t, err)
	require.Equal(t, ledger.Began, begun)
	p := f.piece
	p.Expected, p.Next = ledger.At(5), ledger.At(f.next)
	p.Groups = []ledger.Group{{Windows: []int{0, 1, 2}, Members: []ledger.Member{f.member("u1", 7)}}}
	a, _, err := r.Shadow().Apply(t.Context(), &p)
	require.NoError(t, err)
	require.Equal(t, ledger.Applied, a.Outcome)
	return f, r, from
}

func fatesOf(p *Plan) string {
	var all []string
	for _, w := range p.Windows {
		text := w.Period + " " + w.Fate.String()
		if w.Incomplete {
			text += " incomplete"
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

func (f *fixture) origin(t *testing.T) string {
	t.Helper()
	text, err := f.client.HGet(t.Context(), f.store.keys.origin(), "events/3").Result()
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
	score := func(n int) float64 { return f.client.ZScore(t.Context(), f.key(n), "u1").Val() }
	require.InDelta(t, 7, score(0), 1)
	require.InDelta(t, 10, score(1), 1)
	require.InDelta(t, 10, score(2), 1)
	require.Equal(t, "0 0", f.origin(t), "what is kept is complete, and what is replaced too")
	f.mustApply(t)
}

func TestATornLedgerWithWindowsToBeKeptIsRefusedUnlessThatIsAccepted(t *testing.T) {
	f, r, from := since(t)
	f.held(t, r)
	f.field(t, f.store, "events/3", "torn:10")
	f.unchanged(t, func() {
		var refused *RefusedError
		_, err := r.Swap(t.Context(), Choice{})
		require.ErrorAs(t, err, &refused)
		require.ErrorContains(t, err, "a piece of events/3 was written in part, and the log doesn't reach back to the beginning of global:monthly:")
		require.ErrorContains(t, err, "--accept-incomplete")
		_, err = r.Swap(t.Context(), Choice{Boards: []string{"global"}, AcceptIncomplete: true})
		require.ErrorContains(t, err, "can't be settled for some boards only")
	})
	p, err := r.Swap(t.Context(), Choice{AcceptIncomplete: true})
	require.NoError(t, err)
	require.Equal(t, "monthly kept incomplete, weekly replaced, yearly kept incomplete", fatesOf(p))
	require.Equal(t, fmt.Sprint("5 ", from), f.origin(t))
	for n, want := range []int{0, 1, 1} {
		all, err := incomplete(map[string]string{"events/3": f.origin(t)}, f.piece.Windows[n].Start)
		require.NoError(t, err)
		require.Len(t, all, want, "window %d", n)
	}
	f.mustApply(t)
}

func TestALostLedgerIsRefusedLikewise(t *testing.T) {
	f, r, _ := since(t)
	f.held(t, r)
	f.del(t, f.store.keys.ledger())
	f.unchanged(t, func() {
		_, err := r.Swap(t.Context(), Choice{})
		require.ErrorContains(t, err, "the ledger is lost, so nothing says what the boards hold")
	})
	p, err := r.Swap(t.Context(), Choice{AcceptIncomplete: true})
	require.NoError(t, err)
	require.Equal(t, "monthly kept incomplete, weekly replaced, yearly kept incomplete", fatesOf(p))
	f.mustApply(t)
}

func TestALostBoardIsReplacedInPartOnlyIfThatIsAccepted(t *testing.T) {
	f, r, from := since(t)
	f.held(t, r)
	f.del(t, f.key(1))
	f.unchanged(t, func() {
		_, err := r.Swap(t.Context(), Choice{})
		require.ErrorContains(t, err, "Redis has lost global:monthly:")
	})
	p, err := r.Swap(t.Context(), Choice{AcceptIncomplete: true})
	require.NoError(t, err)
	require.Equal(t, "monthly replaced incomplete, weekly replaced, yearly kept", fatesOf(p))
	require.InDelta(t, 7, f.client.ZScore(t.Context(), f.key(1), "u1").Val(), 1)
	require.InDelta(t, 10, f.client.ZScore(t.Context(), f.key(2), "u1").Val(), 1)
	require.Equal(t, fmt.Sprint("5 ", from), f.origin(t))
	f.mustApply(t)
}

func TestOtherBoardsAndWhatIsOverAreLeftAlone(t *testing.T) {
	f, r := rebuilding(t)
	now := time.Now().UnixMilli()
	f.list(t, f.store, "eu:weekly:x", fmt.Sprint(now-1000, " ", now+1000, " ", now+day))
	f.list(t, f.store, "global:weekly:over", fmt.Sprint(now-100*day, " ", now-93*day, " ", now-1000))
	// By its listing it lives, by today's retention of 60 days not.
	f.list(t, f.store, "global:weekly:longer", fmt.Sprint(now-100*day, " ", now-93*day, " ", now+day))
	require.NoError(t, f.client.ZAdd(t.Context(), f.store.keys.listed("global:weekly:longer"), redisZ(1, "u")).Err())
	p, err := r.Plan(t.Context(), Choice{Boards: []string{"global"}})
	require.NoError(t, err)
	byName := map[string]Planned{}
	for _, w := range p.Windows {
		byName[w.Name] = w
	}
	require.Equal(t, "its board isn't to be rebuilt", byName["x"].Why)
	require.Equal(t, Kept, byName["x"].Fate)
	require.NotContains(t, byName, "over")
	require.Equal(t, "periods.weekly.retention was longer when it began", byName["longer"].Why)
	require.Equal(t, Kept, byName["longer"].Fate)
	require.Len(t, p.Windows, 5)
	require.Empty(t, p.Refused)
}

func TestAListingIsHealedWhereItsBoundsAreOthersAndKeptWhereTheyAreNot(t *testing.T) {
	f, r := rebuilding(t)
	f.held(t, r)
	w, v := f.piece.Windows[0], f.piece.Windows[1]
	healed, kept := f.listing(t, w), fmt.Sprint(v.Start, " ", v.End, " ", v.End+day)
	f.list(t, f.store, w.Listing(), fmt.Sprint(w.Start+1000, " ", w.End, " ", w.End+day))
	f.list(t, f.store, v.Listing(), kept)
	_, err := r.Swap(t.Context(), Choice{})
	require.NoError(t, err)
	require.Equal(t, healed, f.listing(t, w))
	require.Equal(t, kept, f.listing(t, v), "another retention holds for new windows")
	require.InDelta(t, v.End+2*day, time.Now().Add(f.client.PTTL(t.Context(), f.key(1)).Val()).UnixMilli(), 2000)
	f.mustApply(t)
}

// Whatever was read since when, and however the shard is broken: what is replaced is shown
// as complete, what was incomplete and is kept stays so, and what may lack events now is
// shown as incomplete.
func TestOriginsSayWhatIsCompleteAfterwards(t *testing.T) {
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
		for range rapid.IntRange(0, 4).Draw(t, "windows") {
			w := Planned{Start: at.Draw(t, "start"), Lost: rapid.Bool().Draw(t, "lost")}
			if w.Start < p.From { // as fate does, with all accepted
				w.Fate, w.old = Kept, true
				if w.Lost {
					w.Fate, w.Incomplete = Replaced, true
				} else {
					w.Incomplete = p.Orphaned || len(p.Torn) > 0
				}
			}
			p.Windows = append(p.Windows, w)
		}
		then := map[string]string{}
		for field, o := range was {
			then[field] = o.String()
		}
		before := maps.Clone(then)
		for field, text := range p.settle(Choice{AcceptIncomplete: true}, was, read) {
			then[field] = text
		}
		for _, w := range p.Windows {
			lacked, err := incomplete(before, w.Start)
			require.NoError(t, err)
			lacks, err := incomplete(then, w.Start)
			require.NoError(t, err)
			switch {
			case w.Incomplete:
				require.NotEmpty(t, lacks, "it may lack events: %+v", w)
			case w.Fate == Kept && len(lacked) > 0:
				require.NotEmpty(t, lacks, "it lacked events before: %+v", w)
			case w.Fate == Replaced:
				require.Empty(t, lacks, "the log had all of it: %+v", w)
			}
			if w.Fate == Kept && slices.Equal(lacked, nil) && !w.Incomplete && len(p.Torn) == 0 && !p.Orphaned && !slices.ContainsFunc(p.Windows, func(w Planned) bool { return w.Incomplete }) {
				require.Empty(t, lacks, "nothing has changed: %+v", w)
			}
		}
	})
}
