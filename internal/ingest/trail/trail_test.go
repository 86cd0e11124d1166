package trail

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// past has the times of a partition's records, by offset.
type past []int64

// before returns the latest time of the records before an offset that windows accept.
func (p past) before(offset int64) (latest int64) {
	for _, at := range p[:min(offset, int64(len(p)))] {
		if at < beyondAll {
			latest = max(latest, at)
		}
	}
	return latest
}

// bounds checks that a trail is correct for all offsets that it knows.
func (p past) bounds(t *rapid.T, of *Trail) {
	t.Helper()
	for offset := range int64(len(p)) + 1 {
		if got, ok := of.Latest(offset); ok && offset > 0 {
			require.GreaterOrEqual(t, got, p.before(offset), "records before %d; the trail is %s", offset, of)
		}
	}
}

func drawPast(t *rapid.T) past {
	step := rapid.SampledFrom([]int64{1, 1000, markStep / 3, markStep, 24 * markStep, math.MaxInt64 / 1000}).Draw(t, "step")
	at, all := rapid.Int64Range(1, 100*markStep).Draw(t, "begins"), past{}
	for range rapid.IntRange(1, 300).Draw(t, "records") {
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0: // from an offline client
			all = append(all, rapid.Int64Range(1, at).Draw(t, "late"))
		case 1: // without a time
			all = append(all, rapid.SampledFrom([]int64{-1, 0, math.MinInt64}).Draw(t, "none"))
		case 2: // a clock that is fast
			all = append(all, at+rapid.Int64Range(0, step).Draw(t, "ahead"))
		default:
			at += rapid.Int64Range(0, step).Draw(t, "passes")
			all = append(all, at)
		}
	}
	return all
}

func TestATrailIsTrueOfWhateverIsDeleted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPast(t)
		var r Times
		r.Disorder = math.MaxInt64
		var kept Trail // as committed, from time to time
		for offset := int64(0); offset < int64(len(p)); {
			// A flow starts at the ledger's position: earlier after a rollback, later if another worker has
			// read.
			from := max(0, min(offset+rapid.Int64Range(-20, 20).Draw(t, "moved"), int64(len(p))))
			kept.Reach(from, p.before(int64(len(p))))
			r.Begin(kept, from)
			r.newest, r.markAt = 0, 0
			for offset = from; offset < int64(len(p)); offset++ {
				r.Note(offset, p[offset])
				if rapid.IntRange(0, 9).Draw(t, "batch ends") == 0 {
					kept = r.At(offset + 1)
					p.bounds(t, &kept)
					text := kept.String()
					require.LessOrEqual(t, len(text), MaxText)
					parsed, err := Parse(text)
					require.NoError(t, err)
					require.Equal(t, text, parsed.String())
					kept = parsed
				}
				if rapid.IntRange(0, 99).Draw(t, "flow ends") == 0 {
					break
				}
			}
			if offset == int64(len(p)) {
				kept = r.At(offset)
			}
		}
		p.bounds(t, &kept)
		if n := int64(len(p)); n > 0 {
			_, known := kept.Latest(n)
			require.True(t, known, "the end of what was read has a bound")
		}
	})
}

func TestTwoTrailsOfALogAreTogetherAsTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPast(t)
		draw := func(name string) (some Trail) {
			offsets := rapid.SliceOfN(rapid.Int64Range(1, int64(len(p))), 0, 40).Draw(t, name)
			slices.Sort(offsets)
			for _, offset := range offsets {
				some.Add(offset, p.before(offset)+rapid.SampledFrom([]int64{0, 0, 5}).Draw(t, "more"))
			}
			return some
		}
		a, b := draw("one"), draw("other")
		both := a.With(&b)
		p.bounds(t, &both)
		end := rapid.Int64Range(0, int64(len(p))).Draw(t, "end")
		cut := both.Within(end)
		p.bounds(t, &cut)
		require.LessOrEqual(t, cut.last().offset, end)
		// The log was truncated, and has grown since.
		again := append(slices.Clone(p[:end]), drawPast(t)...)
		again.bounds(t, &cut)
		// An election lost the records from there on, and others replace them.
		left := both.Before(end)
		again.bounds(t, &left)
		_, knew := both.Latest(end)
		_, knows := left.Latest(end)
		require.Equal(t, knew && end > 0, knows && end > 0, "the records before are the same")
	})
}

// A log was truncated, or created again under its name, and has grown past the group's commit. The first record
// later than the trail's bound makes the worker drop the trail.
func TestATrailThatARecordDeniesIsForgotten(t *testing.T) {
	before := time.Now().UnixMilli()
	const behind = int64(500) + 2*markStep
	for name, c := range map[string]struct {
		at     int64
		denied int
	}{
		"later than the mark behind it":      {behind + 1, 1},
		"as late as that":                    {behind, 0},
		"later than the mark before it only": {600, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var known Trail
			known.Add(50, 500)
			known.Add(100, behind)
			denied := 0
			r := Times{Disorder: math.MaxInt64, Denied: func(offset int64) { require.Equal(t, int64(80), offset); denied++ }}
			r.Begin(known, 80)
			r.Note(80, c.at)
			got := r.At(90)
			require.Equal(t, c.denied, denied)
			latest, ok := got.Latest(60)
			require.True(t, ok)
			if c.denied > 0 {
				require.GreaterOrEqual(t, latest, before, "nothing is known of what was before it")
			} else {
				require.Equal(t, behind, latest)
			}
		})
	}
}

// A producer that sends microseconds instead of milliseconds does not spoil the trail: no window ever accepts
// such an event.
func TestARecordOfATimeThatNoWindowTakesIsNotTheLatest(t *testing.T) {
	r := Times{Disorder: math.MaxInt64}
	r.Begin(Trail{}, 0)
	const now = int64(1_790_000_000_000)
	r.Note(0, now)
	r.Note(1, now*1000)
	r.Note(2, now+1)
	got := r.At(3)
	latest, ok := got.Latest(3)
	require.True(t, ok)
	require.Equal(t, now+1, latest)
}

// A record without a time counts as no later than the time of reading.
func TestARecordWithoutATimeIsTakenAsOfWhenItWasRead(t *testing.T) {
	var r Times
	r.Begin(Trail{}, 0)
	r.Disorder = 1 << 62
	r.Note(0, 1000)
	r.Note(1, 0)
	r.Note(2, 5000)
	got := r.At(3)
	for offset, before := range map[int64]bool{1: true, 2: false, 3: false} {
		latest, ok := got.Latest(offset)
		require.True(t, ok)
		if !before {
			require.GreaterOrEqual(t, latest, time.Now().Add(-time.Minute).UnixMilli(), "before %d", offset)
		}
	}
}

// Marks get sparser with age: for a year of records, the trail bounds the times of deleted ones to within a part
// of their age.
func TestATrailIsExactToAPartOfTheAge(t *testing.T) {
	const year = int64(365 * 24 * time.Hour / time.Millisecond)
	for _, every := range []int64{1000 * 60, 7 * 60 * 1000, 3600 * 1000} {
		var r Times
		r.Disorder = math.MaxInt64
		r.Begin(Trail{}, 0)
		begin := int64(1_700_000_000_000)
		n := year / every
		for i := range n {
			r.Note(i, begin+i*every)
		}
		got := r.At(n)
		now := begin + n*every
		for i := int64(1); i < n; i += n / 1000 {
			bound, ok := got.Latest(i)
			require.True(t, ok)
			exact := begin + (i-1)*every
			require.LessOrEqual(t, float64(bound-exact), 0.75*float64(now-exact)+2*float64(markStep+every),
				"of an age of %v", time.Duration(now-exact)*time.Millisecond)
		}
	}
}

func TestATrailsTextIsShortHoweverLargeItsNumbers(t *testing.T) {
	var longest Trail
	for i := range int64(maxMarks) {
		longest.marks[i] = mark{math.MaxInt64 - maxMarks + i, math.MaxInt64 - maxMarks + i}
	}
	longest.n = maxMarks
	require.LessOrEqual(t, len(longest.String()), MaxText)
	parsed, err := Parse(longest.String())
	require.NoError(t, err)
	require.Equal(t, longest, parsed)
	require.Empty(t, new(Trail).String())
}

func TestAnotherProgramsMetadataIsNoTrail(t *testing.T) {
	for _, text := range []string{
		"", " ", "hello", "standings/1", "standings/1 ", "standings/2 1:5", "standings/1 1", "standings/1 1:", "standings/1 :5",
		"standings/1 0:5", "standings/1 -1:5", "standings/1 1:-5", "standings/1 1:5,", "standings/1 1:5,1:6", "standings/1 2:5,1:6",
		"standings/1 1:5,2:5", "standings/1 1:5,2:4", "standings/1 +1:5", "standings/1 01:5", "standings/1 1:5:6", "standings/1 1:5 ",
		"standings/1 99999999999999999999:5", "standings/1 1:99999999999999999999", strings.Repeat("x", 5000),
		"standings/1 " + strings.Repeat("1:1,", 2000),
	} {
		_, err := Parse(text)
		require.ErrorIs(t, err, errNoTrail, "%.40q", text)
	}
	many := trailVersion
	for i := range maxMarks + 1 {
		many += fmt.Sprintf(",%d:%d", i+1, i)
	}
	_, err := Parse(strings.Replace(many, " ,", " ", 1))
	require.ErrorIs(t, err, errNoTrail)
}

func FuzzParseTrail(f *testing.F) {
	f.Add("standings/1 10:5,20:7")
	f.Add("standings/1 10:5,20:7,")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Parse(text)
		if err == nil {
			require.Equal(t, text, got.String())
			require.LessOrEqual(t, len(text), MaxText)
		}
	})
}
