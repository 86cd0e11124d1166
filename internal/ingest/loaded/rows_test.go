package loaded

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestRowsAreWhatAMapOfThemIs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r, want := New(1<<30), map[string]Instant{}
		numbers := map[string]uint64{}
		for i := range 3 {
			w := fmt.Sprint("w", i)
			require.Zero(t, r.Number([]byte("global"), "weekly", w))
			numbers[w] = r.NumberFor("global", "weekly", w)
			require.Equal(t, numbers[w], r.Number([]byte("global"), "weekly", w))
		}
		pick := func() (string, string) {
			return fmt.Sprint("m", rapid.IntRange(0, 300).Draw(t, "member")), fmt.Sprint("w", rapid.IntRange(0, 2).Draw(t, "window"))
		}
		for range rapid.IntRange(0, 600).Draw(t, "added") {
			m, w := pick()
			r.Add(KeyOf([]byte(m)), numbers[w])
			want[m+w] = NoRow
		}
		for range rapid.IntRange(0, 200).Draw(t, "set") {
			m, w := pick()
			at := Instant(rapid.Int32Range(0, Most).Draw(t, "instant"))
			r.Set(KeyOf([]byte(m)), numbers[w], at)
			if _, ok := want[m+w]; ok {
				want[m+w] = at
			}
		}
		require.Equal(t, len(want), r.Held())
		for m := range 301 {
			for w, n := range numbers {
				is, ok := want[fmt.Sprint("m", m)+w]
				if !ok {
					is = Unknown
				}
				require.Equal(t, is, r.Instant(KeyOf(fmt.Append(nil, "m", m)), n))
			}
		}
		bytes, fits := r.Needs()
		require.True(t, fits)
		require.LessOrEqual(t, bytes, int64(max(parts*firstSize*entry, 4*entry*len(want)+parts*firstSize*entry)))
	})
}

func TestWhatDoesNotFitIsEstimated(t *testing.T) {
	t.Parallel()
	const n = 200_000
	enough := New(1 << 30)
	for i := range n {
		enough.Add(KeyOf(fmt.Append(nil, "m", i)), 1)
	}
	takes, fits := enough.Needs()
	require.True(t, fits)
	require.LessOrEqual(t, float64(takes), float64(n*entry*8/3)*1.1)

	small := New(takes / 4)
	for range 2 {
		for i := range n {
			small.Add(KeyOf(fmt.Append(nil, "m", i)), 1)
		}
	}
	needs, fits := small.Needs()
	require.False(t, fits)
	require.InEpsilon(t, n*entry*8/3, needs, 0.15)
	require.Zero(t, small.Held(), "it has forgotten all")
	again := New(needs + needs/5)
	for i := range n {
		again.Add(KeyOf(fmt.Append(nil, "m", i)), 1)
	}
	_, fits = again.Needs()
	require.True(t, fits, "with what was said to be needed it fits")
}

func BenchmarkAdd(b *testing.B) {
	r := New(1 << 40)
	ids := make([][]byte, 1<<16)
	for i := range ids {
		ids[i] = fmt.Appendf(nil, "player-%07d", i)
	}
	for i := range b.N {
		r.Add(KeyOf(ids[i&(1<<16-1)]), 1)
	}
}
