package shadow

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/testenv"
)

func (f *fixture) compare(t testing.TB, r *Rebuild) *Comparison {
	t.Helper()
	c, err := r.Compare(t.Context(), Choice{}, 100_000, 0, nil)
	require.NoError(t, err)
	return c
}

func TestAComparisonListsEveryStandingThatDiffers(t *testing.T) {
	f, r := rebuilding(t)
	c := f.compare(t, r)
	require.NoError(t, c.Update(t.Context()))
	require.True(t, c.Exact())
	all := c.Windows()
	require.Len(t, all, 3)
	for _, w := range all {
		require.Equal(t, []int{2, 1, 0}, []int{w.Differ, w.OnlyA, w.OnlyB}, w.Listing())
	}
	list, err := c.Differences(3)
	require.NoError(t, err)
	require.Len(t, list, 3)
	require.Equal(t, "u1", list[0].Member)
	require.Equal(t, []int64{10, 7}, []int64{list[0].A.Points, list[0].B.Points})
	require.Equal(t, list[0].A.ReachedAt, list[0].B.ReachedAt)
	require.Equal(t, "u2", list[1].Member)
	require.True(t, list[1].A.There)
	require.Equal(t, ranking.Row{}, list[1].B)
	require.Equal(t, "u1", list[2].Member)
}

func TestAComparisonThatFindsMoreThanItMayKeepSaysSo(t *testing.T) {
	_, r := rebuilding(t)
	c, err := r.Compare(t.Context(), Choice{}, 5, 0, nil)
	require.NoError(t, err)
	require.False(t, c.Exact())
	list, err := c.Differences(100)
	require.NoError(t, err)
	require.Len(t, list, 5)
}

// An example is a hold that lapses during an update.
func TestWhatAnUpdateThatIsCutShortHadToAskForIsLeftToTheNext(t *testing.T) {
	f, r := rebuilding(t)
	c := f.compare(t, r)
	p := f.NewPiece()
	p.Expected, p.Next = ledger.At(f.Next), ledger.At(f.Next+10)
	p.Groups = []ledger.Group{{Windows: []int{0, 1, 2}, Members: []ledger.Member{f.Member("u1", 3)}}}
	a, _, err := r.Shadow().Apply(t.Context(), &p)
	require.NoError(t, err)
	require.Equal(t, ledger.Applied, a.Outcome)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 {
		require.ErrorIs(t, c.Update(over), context.Canceled)
	}
	require.NoError(t, c.Update(t.Context()))
	require.True(t, c.Exact())
	for _, w := range c.Windows() {
		require.Equal(t, []int{1, 1, 0}, []int{w.Differ, w.OnlyA, w.OnlyB}, w.Listing())
	}
}

// Pieces of the same log are written to a live board and its rebuild, in turns and concurrently, while the
// boards are compared. In the end exactly the modified standings differ.
func TestAComparisonIsExactAlthoughBothSidesAreWritten(t *testing.T) {
	testenv.SlowEmbedded(t)
	f := someone(t)
	random := rand.New(rand.NewPCG(1, 2))
	const members, pieces = 3000, 60
	var log []ledger.Piece
	for n := range pieces {
		p := f.NewPiece()
		p.Expected, p.Next = ledger.At(10+10*int64(n)), ledger.At(20+10*int64(n))
		taken := map[int]bool{}
		g := ledger.Group{Windows: []int{0, 1, 2}}
		for range 100 {
			if m := random.IntN(members); !taken[m] {
				taken[m] = true
				g.Members = append(g.Members, f.Member(fmt.Sprint("m", m), random.Int64N(50)-20))
			}
		}
		p.Groups = []ledger.Group{g}
		log = append(log, p)
	}
	apply := func(s keyed, pieces []ledger.Piece) {
		for i := range pieces {
			a, _, err := s.Apply(t.Context(), &pieces[i])
			require.NoError(t, err)
			require.Equal(t, ledger.Applied, a.Outcome)
		}
	}
	apply(f.Store, log[:30])
	r := f.rebuild(t, f.Member("u1", 10))
	apply(r.Shadow(), log[:10])
	require.NoError(t, f.Client.ZAdd(t.Context(), f.Key(1), redis.Z{Score: 3, Member: "m7"}, redis.Z{Score: 4, Member: "stranger"}).Err())
	require.NoError(t, f.Client.ZRem(t.Context(), f.Key(2), "m8").Err())
	apply(f.Store, log[30:31])

	var both sync.WaitGroup
	both.Go(func() { apply(f.Store, log[31:]); apply(r.Shadow(), log[10:]) })
	c := f.compare(t, r)
	for range 3 {
		require.NoError(t, c.Update(t.Context()))
	}
	both.Wait()
	require.NoError(t, c.Update(t.Context()))
	require.True(t, c.Exact())
	list, err := c.Differences(100)
	require.NoError(t, err)
	seen := map[string][]string{}
	for _, d := range list {
		seen[d.Member] = append(seen[d.Member], d.Period)
	}
	require.Equal(t, map[string][]string{"m7": {"monthly"}, "stranger": {"monthly"}, "m8": {"yearly"}}, seen)
}

// eavesdropper receives the arguments of every call, and decides whether the call fails.
type eavesdropper func(args []any) error

func (eavesdropper) DialHook(next redis.DialHook) redis.DialHook { return next }
func (a eavesdropper) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := a(cmd.Args()); err != nil {
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}
func (eavesdropper) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
