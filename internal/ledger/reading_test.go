package ledger

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func standing(t require.TestingT, texts ...string) Positions {
	all := Positions{}
	for _, text := range texts {
		p, err := Parse(text)
		require.NoError(t, err)
		all = append(all, p)
	}
	return all
}

func TestTheNextReading(t *testing.T) {
	const f, a, z = "@00000000000000ff", "@aaaaaaaaaaaaaaaa", "@ffffffffffffff00"
	for _, c := range []struct {
		what string
		at   []string
		next Reading
	}{
		{"one shard", []string{"120"}, Reading{From: 120}},
		{"one shard in a sweep", []string{"120..480" + a}, Reading{From: 120, To: 480}},
		{"all level", []string{"120", "120", "120"}, Reading{From: 120}},
		{"shards that lag", []string{"480", "120", "300"}, Reading{From: 120}},
		{"a crash in the middle of a batch", []string{"120..480" + f, "120..480" + z}, Reading{From: 120, To: 480}},
		{"and one is through", []string{"480", "120..480" + z}, Reading{From: 120, To: 480}},
		{"and one hasn't begun", []string{"120", "120..480" + z}, Reading{From: 120, To: 480}},
		{"and one that lagged hasn't begun", []string{"90", "120..480" + z}, Reading{From: 120, To: 480, Without: []bool{true, false}}},
		{"and one that lagged has", []string{"90..480" + f, "120..480" + z}, Reading{From: 90, To: 480}},
		{"a lagging one goes along within", []string{"90..480" + f, "120"}, Reading{From: 90, To: 480}},
		{"a master went back between sweeps", []string{"20", "480", "480"}, Reading{From: 20}},
		{"a master went back into a sweep", []string{"20..100" + f, "480", "600"}, Reading{From: 20, To: 100}},
		{"a master went back, the others are in a sweep", []string{"20", "480..600" + a, "600"}, Reading{From: 480, To: 600, Without: []bool{true, false, false}}},
		{"two sweeps apart", []string{"20..100" + f, "480..600" + a}, Reading{From: 20, To: 100, Without: []bool{false, true}}},
		{"two sweeps that overlap", []string{"20..700" + f, "480..600" + a, "500"}, Reading{From: 480, To: 600, Without: []bool{true, false, false}}},
		{"a shard for which nothing is read", []string{"120", At(math.MaxInt64).String()}, Reading{From: 120}},
	} {
		require.Equal(t, c.next, standing(t, c.at...).Next(), c.what)
	}
}

// The readings bring all shards to one position, and each counts every event once. The test simulates them
// with sets of offsets.
func TestReadingsLevelWithEveryEventOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := Shards(rapid.IntRange(1, 5).Draw(t, "shards"))
		const end = 40
		at := Positions{}
		counted := make([][]int, n) // counts by shard and offset, for a member with a low hash and one with a high hash
		for i := range int(n) {
			p := At(rapid.Int64Range(0, end).Draw(t, "from"))
			if rapid.Bool().Draw(t, "sweeping") && p.From < end {
				p.To = rapid.Int64Range(p.From+1, end).Draw(t, "to")
				p.Hash = n.From(i) + 1<<60/uint64(n) // between the two hashes
			}
			at = append(at, p)
			counted[i] = make([]int, 2*end)
			for o := range int64(end) {
				if o < p.From || p.Sweeping() && o < p.To {
					counted[i][2*o] = 1
				}
				if o < p.From {
					counted[i][2*o+1] = 1
				}
			}
		}
		for readings := 0; !at.Level() || at[0] != At(end); readings++ {
			require.Less(t, readings, int(n)+2)
			r := at.Next()
			to := r.To
			if !r.Resumes() {
				to = end
			}
			for i, p := range at {
				if !r.For(i) || p.From >= to {
					continue
				}
				require.GreaterOrEqual(t, p.From, r.From, "what it is for lies in the range")
				for o := r.From; o < to; o++ {
					if o < p.From {
						continue
					}
					if !p.Sweeping() {
						counted[i][2*o]++
					}
					counted[i][2*o+1]++
				}
				if p.Sweeping() {
					require.Equal(t, to, p.To, "a sweep's end can't be moved")
				}
				at[i] = At(to)
			}
		}
		for i := range counted {
			for o, times := range counted[i] {
				require.Equal(t, 1, times, "shard %d, offset %d", i, o/2)
			}
		}
	})
}

func TestPositionsAsText(t *testing.T) {
	require.Equal(t, "120", standing(t, "120").String())
	require.Equal(t, "120", standing(t, "120", "120").String())
	require.Equal(t, "[120 90..480@00000000000000ff]", standing(t, "120", "90..480@00000000000000ff").String())
	require.Equal(t, int64(90), standing(t, "120", "90..480@00000000000000ff").Lowest())
	require.True(t, standing(t, "120", "90..480@00000000000000ff").Sweeping())
	require.False(t, AllAt(7, 3).Sweeping())
	require.Len(t, AllAt(7, 3), 3)
}
