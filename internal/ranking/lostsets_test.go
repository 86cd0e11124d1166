package ranking

// A window with hidden members has two keys, and Redis can lose each of them. The listing tells which keys
// must exist, because an empty sorted set has no key.

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/test/testenv"
)

func TestAWindowThatHasLostOneOfItsTwoKeysIsLost(t *testing.T) {
	const banned, other = 0, 1
	ban := func(f *fixture, m string) error { return f.store.Ban(t.Context(), Ban{Member: m}) }
	unban := func(f *fixture, m string) error { return f.store.Unban(t.Context(), Ban{Member: m}) }
	type step = func(t *testing.T, f *fixture, members []string)
	does := func(do func(f *fixture, m string) error, who int) step {
		return func(t *testing.T, f *fixture, members []string) { require.NoError(t, do(f, members[who])) }
	}
	counts := func(who ...int) step {
		return func(t *testing.T, f *fixture, members []string) {
			var some []ledger.Member
			for _, n := range who {
				some = append(some, f.member(members[n], 5))
			}
			f.add(t, some...)
		}
	}
	removes := func(key func(Keys, string) string) step {
		return func(t *testing.T, f *fixture, _ []string) { f.del(t, key(f.store.keys, f.piece.Windows[0].Listing())) }
	}
	shown, hidden := removes(Keys.Listed), removes(Keys.Hidden)
	for name, c := range map[string]struct {
		steps []step
		lost  bool
	}{
		"nothing is lost":                           {[]step{counts(banned, other), does(ban, banned), counts(banned, other)}, false},
		"shown, while one is hidden":                {[]step{counts(banned, other), does(ban, banned), shown}, true},
		"hidden, while one is shown":                {[]step{counts(banned, other), does(ban, banned), hidden}, true},
		"shown, beside one who was never shown":     {[]step{does(ban, banned), counts(banned, other), shown}, true},
		"hidden, beside one who was never shown":    {[]step{does(ban, banned), counts(banned, other), hidden}, true},
		"everybody is hidden":                       {[]step{counts(banned), does(ban, banned), counts(banned)}, false},
		"everybody is hidden from the first":        {[]step{does(ban, banned), counts(banned), counts(banned)}, false},
		"hidden, where everybody is":                {[]step{counts(banned), does(ban, banned), hidden}, true},
		"everybody was hidden, and one comes":       {[]step{counts(banned), does(ban, banned), counts(other)}, false},
		"shown, where one has come":                 {[]step{counts(banned), does(ban, banned), counts(other), shown}, true},
		"nobody is hidden any more":                 {[]step{counts(banned, other), does(ban, banned), counts(banned), does(unban, banned), counts(banned)}, false},
		"shown, where nobody is hidden any more":    {[]step{counts(banned), does(ban, banned), counts(banned), does(unban, banned), shown}, true},
		"everybody is hidden, and another shown":    {[]step{counts(banned, other), does(ban, banned), does(ban, other), does(unban, banned)}, false},
		"shown, and a ban comes after that":         {[]step{counts(banned, other), shown, does(ban, banned)}, true},
		"shown, and what is hidden comes back":      {[]step{counts(banned, other), does(ban, banned), shown, does(unban, banned)}, true},
		"hidden, and another ban comes after that":  {[]step{counts(banned, other), does(ban, banned), hidden, does(ban, other)}, true},
		"hidden, and its only one is shown":         {[]step{counts(banned, other), does(ban, banned), hidden, does(unban, banned)}, true},
		"one of two comes back by an event of them": {[]step{counts(banned, other), does(ban, banned), does(ban, other), does(unban, other), counts(other)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, testenv.RedisClient(t), testenv.Prefix(t))
			f.begin(t)
			members := membersOf(f.store, 2)
			for _, s := range c.steps {
				s(t, f, members)
			}
			window := f.piece.Windows[0].Listing()
			var listed []string
			why := ""
			if c.lost {
				listed, why = []string{window}, LostBoard
			}
			lost, err := f.store.Lost(t.Context())
			require.NoError(t, err)
			require.Equal(t, listed, lost)
			b, err := f.store.Top(t.Context(), "global", f.window(0), 0, 10)
			require.NoError(t, err)
			require.Equal(t, why, b.Lost)
			f.piece.Groups = []ledger.Group{{Windows: []int{0, 1, 2}, Members: []ledger.Member{f.member(members[other], 5)}}}
			f.piece.Expected, f.piece.Next = ledger.At(f.next), ledger.At(f.next+10)
			want := ledger.Answer{Outcome: ledger.Applied}
			if c.lost {
				want = ledger.Answer{Outcome: ledger.Lost, Window: window}
				f.unchanged(t, func() { require.Equal(t, want, f.apply(t)) })
				return
			}
			require.Equal(t, want, f.apply(t))
		})
	}
}
