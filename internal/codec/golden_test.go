// The golden vectors. They are computed with math/big from the design's formulas, without the package's
// code, and the test of the Lua code uses them too. testdata/README.md describes the file's format.

package codec

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write testdata/golden.json anew")

const goldenPath = "testdata/golden.json"

type goldenLayout struct {
	Kind     Kind  `json:"kind"`
	LengthMS int64 `json:"length_ms"`
	Max      int64 `json:"max"`
	K        int   `json:"k"`
	Tick     int64 `json:"tick"`

	Scores  []goldenScore   `json:"scores"`
	Refused []goldenRefused `json:"refused"`
	Times   []goldenTime    `json:"times"`
}

type goldenScore struct {
	Points int64  `json:"points"`
	Ticks  int64  `json:"ticks"`
	Bits   string `json:"bits"`
	Text   string `json:"text"`
}

type goldenRefused struct {
	Bits string `json:"bits"`
	Text string `json:"text"`
}

type goldenTime struct {
	Start int64  `json:"start"`
	End   int64  `json:"end"`
	At    int64  `json:"at"`
	Ticks int64  `json:"ticks"`
	Time  *int64 `json:"time"`
}

func (g goldenLayout) layout() Layout {
	return Layout{Kind: g.Kind, K: g.K, Tick: g.Tick, Max: g.Max}
}

const hour = int64(time.Hour / time.Millisecond)

// goldenCases have the periods' lengths with the documented ranges, and ranges at the limits of each kind.
var goldenCases = []struct {
	kind   Kind
	length int64
	max    int64
}{
	{Readable, 36 * hour, 99_999_999},
	{Readable, 180 * hour, 99_999_999},
	{Readable, 756 * hour, 99_999_999},
	{Readable, 2220 * hour, 99_999_999},
	{Readable, 8796 * hour, 99_999_999},
	{Readable, 1 << 32 * 1000, 99_999_999},
	{Readable, 180 * hour, 1},
	{Readable, 180 * hour, 1<<23 - 1},
	{Readable, 180 * hour, 1 << 23},
	{Readable, 8796 * hour, widest},
	{Wide, 36 * hour, 2_000_000_000},
	{Wide, 180 * hour, 2_000_000_000},
	{Wide, 756 * hour, 2_000_000_000},
	{Wide, 8796 * hour, 2_000_000_000},
	{Wide, 8796 * hour, 10_000_000_000},
	{Wide, 1 << 32 * 1000, 99_999_999},
	{Wide, 8796 * hour, 1},
	{Wide, 8796 * hour, 2_145_386_495}, // the last with k 31 …
	{Wide, 8796 * hour, 2_145_386_496}, // … and the first with k 30
	{Wide, 8796 * hour, widest},
}

func goldenVectors(t testing.TB) []goldenLayout {
	t.Helper()
	var all []goldenLayout
	for _, c := range goldenCases {
		k, tick := bigLayout(c.kind, c.length, c.max)
		g := goldenLayout{Kind: c.kind, LengthMS: c.length, Max: c.max, K: k, Tick: tick}
		for _, points := range goldenPoints(c.max, k) {
			for _, ticks := range goldenTicks(k, (c.length-1)/tick) {
				bits := bigEncode(t, g.layout(), points, ticks)
				g.Scores = append(g.Scores, goldenScore{points, ticks, hex(bits), text(bits)})
			}
		}
		g.Refused = goldenRefusals(t, g)
		g.Times = goldenTimes(c.length, tick)
		all = append(all, g)
	}
	return all
}

// goldenPoints returns the range's ends and their neighbours, and the points at which a wide score's
// exponent changes.
func goldenPoints(limit int64, k int) []int64 {
	ps := []int64{-limit, -limit + 1, -limit + 2, -limit / 2, -limit / 3, -2, -1, 0, 1, 2, limit / 3, limit / 2, limit - 2, limit - 1, limit}
	step := int64(1) << (52 - k)
	for _, j := range []int64{1, 1023, 2045} {
		if limit < widest/2 || j == 1 {
			ps = append(ps, j*step-limit-1, j*step-limit)
		}
	}
	return within(ps, -limit, limit)
}

func goldenTicks(k int, used int64) []int64 {
	last := int64(1)<<k - 1
	return within([]int64{0, 1, last / 3, used, last - 1, last}, 0, last)
}

func within(values []int64, lo, hi int64) []int64 {
	values = slices.DeleteFunc(values, func(v int64) bool { return v < lo || v > hi })
	slices.Sort(values)
	return slices.Compact(values)
}

// goldenRefusals returns the neighbours of a layout's first and last score, fractions finer than a tick,
// and doubles that aren't usable numbers.
func goldenRefusals(t testing.TB, g goldenLayout) []goldenRefused {
	t.Helper()
	const sign = uint64(1) << 63
	first, last := bigEncode(t, g.layout(), -g.Max, 0), bigEncode(t, g.layout(), g.Max, 1<<g.K-1)
	low, high := math.Float64frombits(first), math.Float64frombits(last)
	tick := math.Ldexp(1, -g.K)
	var list []goldenRefused
	seen := map[uint64]bool{}
	for _, f := range []float64{
		math.Nextafter(low, math.Inf(-1)), math.Nextafter(high, math.Inf(1)),
		low - tick, low - 1, high + tick, high + 1, tick / 2, -tick / 2, 1 - tick/2, -0.25 - 1.0/(1<<54),
		math.Float64frombits(firstNormal - 1), math.Float64frombits(first ^ sign), math.Float64frombits(last ^ sign),
		math.Copysign(0, -1), 0, math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64,
		math.MaxFloat64, -math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN(),
	} {
		bits := math.Float64bits(f)
		if _, _, ok := bigDecode(g.layout(), bits); !ok && !seen[bits] {
			seen[bits] = true
			list = append(list, goldenRefused{hex(bits), text(bits)})
		}
	}
	return list
}

// goldenTimes returns a window of the full length and a shorter one that isn't a multiple of a tick, with
// times at their ends, at the ends of ticks, and outside.
func goldenTimes(length, tick int64) []goldenTime {
	var list []goldenTime
	for _, w := range []struct{ start, end int64 }{
		{0, length},
		{1_795_000_000_000, 1_795_000_000_000 + length - length/15 - 1},
	} {
		for _, at := range []int64{
			-1, w.start - 1, w.start, w.start + 1, w.start + tick - 1, w.start + tick, w.start + tick + 1,
			(w.start + w.end) / 2, w.end - 2*tick - 1, w.end - 2*tick, w.end - tick - 1, w.end - tick,
			w.end - 2, w.end - 1, w.end, w.end + 1, w.end + tick,
		} {
			ticks, when := bigTicks(w.start, w.end, at, tick)
			list = append(list, goldenTime{w.start, w.end, at, ticks, when})
		}
	}
	return list
}

func hex(bits uint64) string { return fmt.Sprintf("%016x", bits) }

func text(bits uint64) string {
	return strconv.FormatFloat(math.Float64frombits(bits), 'g', -1, 64)
}

// goldenFile prints one vector per line, so that diffs are readable.
func goldenFile(t testing.TB, all []goldenLayout) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("{\"layouts\": [\n")
	for i, g := range all {
		fmt.Fprintf(&b, "{\"kind\": %q, \"length_ms\": %d, \"max\": %d, \"k\": %d, \"tick\": %d,\n",
			g.Kind, g.LengthMS, g.Max, g.K, g.Tick)
		lines(t, &b, "scores", g.Scores)
		b.WriteString(",\n")
		lines(t, &b, "refused", g.Refused)
		b.WriteString(",\n")
		lines(t, &b, "times", g.Times)
		b.WriteString(closing("}", i, len(all)))
	}
	b.WriteString("]}\n")
	return b.Bytes()
}

func lines[T any](t testing.TB, b *bytes.Buffer, name string, vectors []T) {
	t.Helper()
	fmt.Fprintf(b, " %q: [\n", name)
	for i, v := range vectors {
		line, err := json.Marshal(v)
		require.NoError(t, err)
		b.WriteString(closing("  "+string(line), i, len(vectors)))
	}
	b.WriteString(" ]")
}

func closing(s string, i, n int) string {
	if i < n-1 {
		return s + ",\n"
	}
	return s + "\n"
}

func readGolden(t testing.TB) []goldenLayout {
	t.Helper()
	data, err := os.ReadFile(goldenPath)
	require.NoError(t, err)
	var file struct {
		Layouts []goldenLayout `json:"layouts"`
	}
	require.NoError(t, json.Unmarshal(data, &file))
	return file.Layouts
}

func TestTheGoldenVectorsAreWhatExactArithmeticSays(t *testing.T) {
	want := goldenFile(t, goldenVectors(t))
	if *update {
		require.NoError(t, os.WriteFile(goldenPath, want, 0o644))
	}
	got, err := os.ReadFile(goldenPath)
	require.NoError(t, err)
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs from what math/big says; go test . -run Golden -update writes it anew", goldenPath)
	}
}

func TestScoresAreTheGoldenOnesAndRise(t *testing.T) {
	for _, g := range readGolden(t) {
		l, before := g.layout(), math.Inf(-1)
		for _, v := range g.Scores {
			score, err := l.Encode(v.Points, v.Ticks)
			if err != nil || hex(math.Float64bits(score)) != v.Bits {
				t.Fatalf("%v: Encode(%d, %d) = %v, %v; want bits %s", l, v.Points, v.Ticks, score, err, v.Bits)
			}
			if score <= before {
				t.Errorf("%v: the score of %d points and %d ticks isn't above the one before", l, v.Points, v.Ticks)
			}
			before = score
			read, err := strconv.ParseFloat(v.Text, 64)
			if err != nil || read != score {
				t.Errorf("%v: text %s reads as %v, %v; want %v", l, v.Text, read, err, score)
			}
			points, ticks, err := l.Decode(read)
			if err != nil || points != v.Points || ticks != v.Ticks {
				t.Errorf("%v: Decode(%s) = %d, %d, %v; want %d, %d", l, v.Text, points, ticks, err, v.Points, v.Ticks)
			}
		}
	}
}

func TestDecodeRefusesTheGoldenRefusals(t *testing.T) {
	for _, g := range readGolden(t) {
		for _, v := range g.Refused {
			bits, err := strconv.ParseUint(v.Bits, 16, 64)
			require.NoError(t, err)
			wantRefused(t, g.layout(), math.Float64frombits(bits))
		}
	}
}

func TestTicksAndTimesAreTheGoldenOnes(t *testing.T) {
	for _, g := range readGolden(t) {
		l := g.layout()
		for _, v := range g.Times {
			if got := l.Ticks(v.Start, v.End, v.At); got != v.Ticks {
				t.Errorf("%v: Ticks(%d, %d, %d) = %d, want %d", l, v.Start, v.End, v.At, got, v.Ticks)
			}
			if v.Time == nil {
				continue
			}
			if got := l.Time(v.Start, v.End, v.Ticks); got != *v.Time {
				t.Errorf("%v: Time(%d, %d, %d) = %d, want %d", l, v.Start, v.End, v.Ticks, got, *v.Time)
			}
		}
	}
}
