// The formulas of unsigned layouts in exact arithmetic, and the golden vectors of tuples, which are
// computed without the package's code. testdata/README.md describes the file's format.

package codec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const tuplesPath = "testdata/tuples.json"

// bigTupleLayout increases k from 1, like bigLayout.
func bigTupleLayout(kind Kind, length, low, limit int64) (k int, tick int64) {
	if low < 0 {
		return bigLayout(kind, length, limit)
	}
	fits := func(k int) bool {
		n := new(big.Int).Add(big.NewInt(limit), big.NewInt(1))
		n.Mul(n, pow2(k))
		if kind == Readable {
			return n.Cmp(pow2(53)) <= 0
		}
		return n.Cmp(new(big.Int).Sub(pow2(63), pow2(53))) <= 0
	}
	for k = 1; pow2(k).Cmp(big.NewInt(length)) < 0 && fits(k+1); k++ {
	}
	n := new(big.Int).Add(big.NewInt(length), pow2(k))
	n.Sub(n, big.NewInt(1)).Div(n, pow2(k))
	return k, n.Int64()
}

func bigEncodeTuple(t rapid.TB, l Layout, low int64, packed *big.Int, ticks int64) uint64 {
	t.Helper()
	if low < 0 {
		return bigEncode(t, l, packed.Int64(), ticks)
	}
	if l.Kind == Readable {
		r := new(big.Rat).SetFrac(big.NewInt(ticks), pow2(l.K))
		f, exact := r.Add(r, new(big.Rat).SetInt(packed)).Float64()
		if !exact {
			t.Fatalf("%v: %v isn't a double", l, r)
		}
		return math.Float64bits(f)
	}
	n := new(big.Int).Mul(packed, pow2(l.K))
	return n.Add(n, big.NewInt(ticks)).Add(n, pow2(52)).Uint64()
}

// bigDecodeTuple reports whether bits are a score of the layout, and returns its packed number and ticks.
func bigDecodeTuple(l Layout, low int64, bits uint64) (packed, ticks int64, ok bool) {
	if low < 0 {
		return bigDecode(l, bits)
	}
	n := new(big.Int)
	if l.Kind == Readable {
		r := new(big.Rat).SetFloat64(math.Float64frombits(bits))
		if r == nil {
			return 0, 0, false
		}
		if r.Mul(r, new(big.Rat).SetInt(pow2(l.K))); !r.IsInt() {
			return 0, 0, false
		}
		n.Set(r.Num())
	} else {
		if exponent := bits >> 52; exponent == 0 || exponent >= 0x7ff {
			return 0, 0, false
		}
		n.SetUint64(bits).Sub(n, pow2(52))
	}
	p, m := new(big.Int).DivMod(n, pow2(l.K), new(big.Int))
	if p.Sign() < 0 || p.Cmp(big.NewInt(l.Max)) > 0 {
		return 0, 0, false
	}
	return p.Int64(), m.Int64(), true
}

type goldenField struct {
	Name   string `json:"name"`
	Max    int64  `json:"max"`
	Signed bool   `json:"signed,omitempty"`
	Fewest bool   `json:"fewest,omitempty"`
}

type goldenTuple struct {
	Tuple  []int64 `json:"tuple"`
	Ticks  int64   `json:"ticks"`
	Packed int64   `json:"packed"`
	Bits   string  `json:"bits"`
	Text   string  `json:"text"`
}

type goldenTuples struct {
	Kind     Kind            `json:"kind"`
	LengthMS int64           `json:"length_ms"`
	Fields   []goldenField   `json:"fields"`
	Max      int64           `json:"max"`
	K        int             `json:"k"`
	Tick     int64           `json:"tick"`
	Scores   []goldenTuple   `json:"scores"`
	Refused  []goldenRefused `json:"refused"`
}

func (g goldenTuples) list() []Field {
	var list []Field
	for _, f := range g.Fields {
		list = append(list, Field(f))
	}
	return list
}

func (g goldenTuples) layout(t testing.TB) TupleLayout {
	t.Helper()
	return mustTupleLayout(t, g.Kind, time.Duration(g.LengthMS)*time.Millisecond, mustFields(t, g.list()...))
}

// goldenTupleCases are realistic boards, and fields at the limits.
var goldenTupleCases = []struct {
	kind   Kind
	length int64
	list   []Field
}{
	{Readable, 180 * hour, arena},
	{Wide, 180 * hour, arena},
	{Readable, 8796 * hour, lap},
	{Wide, 8796 * hour, lap},
	{Readable, 36 * hour, medals},
	{Wide, 1 << 32 * 1000, medals},
	{Readable, 180 * hour, golf},
	{Wide, 180 * hour, golf},
	{Readable, 180 * hour, points},
	{Wide, 180 * hour, points},
	{Readable, 180 * hour, []Field{{Name: "wins", Max: 150}}},
	{Readable, 756 * hour, []Field{{Name: "level", Max: 60}, {Name: "xp", Max: 5000}, {Name: "deaths", Max: 250, Fewest: true}}},
	{Wide, 756 * hour, []Field{{Name: "level", Max: 60}, {Name: "xp", Max: 5000}, {Name: "deaths", Max: 250, Fewest: true}}},
	{Readable, 8796 * hour, []Field{{Name: "a", Max: widest}}},
	{Wide, 8796 * hour, []Field{{Name: "a", Max: widestUnsigned, Fewest: true}}},
	{Wide, 8796 * hour, []Field{{Name: "a", Max: 1<<26 - 1}, {Name: "b", Max: 1<<27 - 1, Fewest: true}}},
	{Readable, 180 * hour, []Field{{Name: "a", Max: 3, Fewest: true}, {Name: "b", Max: 90}, {Name: "c", Max: 1}, {Name: "d", Max: 999}, {Name: "e", Max: 50_000_000, Fewest: true}}},
	{Wide, 180 * hour, []Field{{Name: "a", Max: 4999}, {Name: "b", Max: 90}, {Name: "c", Max: 1}, {Name: "d", Max: 999, Fewest: true}, {Name: "e", Max: 4_000_000}}},
}

func goldenTupleVectors(t testing.TB) []goldenTuples {
	t.Helper()
	var all []goldenTuples
	for _, c := range goldenTupleCases {
		g := goldenTuples{Kind: c.kind, LengthMS: c.length}
		for _, f := range c.list {
			g.Fields = append(g.Fields, goldenField(f))
		}
		g.Max = bigPack(c.kind, c.list, bestOf(c.list)).Int64()
		low := int64(0)
		if c.list[0].Signed {
			low = -g.Max
		}
		g.K, g.Tick = bigTupleLayout(c.kind, c.length, low, g.Max)
		l := Layout{Kind: c.kind, K: g.K, Tick: g.Tick, Max: g.Max}
		for _, tuple := range goldenTupleValues(c.list) {
			packed := bigPack(c.kind, c.list, tuple)
			for _, ticks := range goldenTicks(l.K, (c.length-1)/l.Tick) {
				bits := bigEncodeTuple(t, l, low, packed, ticks)
				g.Scores = append(g.Scores, goldenTuple{tuple[:len(c.list)], ticks, packed.Int64(), hex(bits), text(bits)})
			}
		}
		g.Refused = goldenTupleRefusals(t, l, low, c.list)
		all = append(all, g)
	}
	return all
}

// goldenTupleValues returns the worst and the best tuple, and tuples in which one field is at an end of its
// range or next to it.
func goldenTupleValues(list []Field) []Tuple {
	low := make([]int64, len(list))
	var worst, middle Tuple
	for i, f := range list {
		if f.Signed {
			low[i] = -f.Max
		}
		worst[i] = low[i]
		if f.Fewest {
			worst[i] = f.Max
		}
		middle[i] = f.Max / 3
	}
	all := []Tuple{worst, bestOf(list), middle, {}}
	for i, f := range list {
		for _, base := range []Tuple{worst, middle} {
			for _, value := range []int64{low[i], low[i] + 1, f.Max / 2, f.Max - 1, f.Max} {
				base[i] = value
				all = append(all, base)
			}
		}
	}
	slices.SortFunc(all, func(a, b Tuple) int { return compare(list, a, b) })
	return slices.Compact(all)
}

// goldenTupleRefusals returns the neighbours of the first and the last score, doubles that aren't usable
// numbers, and, for readable, numbers with a digit above its field's max.
func goldenTupleRefusals(t testing.TB, l Layout, lowest int64, list []Field) []goldenRefused {
	t.Helper()
	low := math.Float64frombits(bigEncodeTuple(t, l, lowest, big.NewInt(lowest), 0))
	high := math.Float64frombits(bigEncodeTuple(t, l, lowest, big.NewInt(l.Max), 1<<l.K-1))
	tick := math.Ldexp(1, -l.K)
	candidates := []float64{
		math.Nextafter(low, math.Inf(-1)), math.Nextafter(high, math.Inf(1)), high + tick, high + 1, -low - 1, -high, -1, tick / 2, 1 - tick/2,
		math.Float64frombits(firstNormal - 1), math.SmallestNonzeroFloat64, math.MaxFloat64, -math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN(),
		math.Ldexp(1, 53), math.Ldexp(1, 60),
	}
	past := map[float64]bool{}
	if l.Kind == Readable && len(list) > 1 {
		weight := 1.0
		for _, f := range slices.Backward(list[1:]) {
			digits := math.Pow(10, float64(len(fmt.Sprint(f.Max))))
			if digit := float64(f.Max + 1); digit < digits {
				past[digit*weight] = true
				past[(digits-1)*weight+1-tick] = true
			}
			weight *= digits
		}
		for score := range past {
			candidates = append(candidates, score)
		}
		slices.Sort(candidates[len(candidates)-len(past):])
	}
	var refused []goldenRefused
	seen := map[uint64]bool{}
	for _, f := range candidates {
		bits := math.Float64bits(f)
		if _, _, ok := bigDecodeTuple(l, lowest, bits); (!ok || past[f]) && !seen[bits] {
			seen[bits] = true
			refused = append(refused, goldenRefused{hex(bits), text(bits)})
		}
	}
	return refused
}

func tuplesFile(t testing.TB, all []goldenTuples) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("{\"layouts\": [\n")
	for i, g := range all {
		fields, err := json.Marshal(g.Fields)
		require.NoError(t, err)
		fmt.Fprintf(&b, "{\"kind\": %q, \"length_ms\": %d, \"max\": %d, \"k\": %d, \"tick\": %d,\n \"fields\": %s,\n",
			g.Kind, g.LengthMS, g.Max, g.K, g.Tick, fields)
		lines(t, &b, "scores", g.Scores)
		b.WriteString(",\n")
		lines(t, &b, "refused", g.Refused)
		b.WriteString(closing("}", i, len(all)))
	}
	b.WriteString("]}\n")
	return b.Bytes()
}

func readGoldenTuples(t testing.TB) []goldenTuples {
	t.Helper()
	data, err := os.ReadFile(tuplesPath)
	require.NoError(t, err)
	var file struct {
		Layouts []goldenTuples `json:"layouts"`
	}
	require.NoError(t, json.Unmarshal(data, &file))
	return file.Layouts
}

func TestTheGoldenTuplesAreWhatExactArithmeticSays(t *testing.T) {
	want := tuplesFile(t, goldenTupleVectors(t))
	if *update {
		require.NoError(t, os.WriteFile(tuplesPath, want, 0o644))
	}
	got, err := os.ReadFile(tuplesPath)
	require.NoError(t, err)
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs from what math/big says; go test . -run Golden -update writes it anew", tuplesPath)
	}
}

func TestTheScoresOfTuplesAreTheGoldenOnesAndRise(t *testing.T) {
	for _, g := range readGoldenTuples(t) {
		l, before := g.layout(t), math.Inf(-1)
		if l.K != g.K || l.Tick != g.Tick || l.Packing.Max != g.Max {
			t.Errorf("%v, want k %d, tick %d, packed up to %d", l, g.K, g.Tick, g.Max)
		}
		for _, v := range g.Scores {
			var tuple Tuple
			copy(tuple[:], v.Tuple)
			if packed := mustPack(t, l.Packing, tuple); packed != v.Packed {
				t.Fatalf("%v: %v is packed into %d, want %d", l, v.Tuple, packed, v.Packed)
			}
			score, err := l.Encode(tuple, v.Ticks)
			if err != nil || hex(math.Float64bits(score)) != v.Bits {
				t.Fatalf("%v: Encode(%v, %d) = %v, %v; want bits %s", l, v.Tuple, v.Ticks, score, err, v.Bits)
			}
			if score <= before {
				t.Errorf("%v: the score of %v and %d ticks isn't above the one before", l, v.Tuple, v.Ticks)
			}
			before = score
			read, err := strconv.ParseFloat(v.Text, 64)
			require.NoError(t, err)
			if back, ticks, err := l.Decode(read); err != nil || back != tuple || ticks != v.Ticks {
				t.Errorf("%v: Decode(%s) = %v, %d, %v; want %v, %d", l, v.Text, back, ticks, err, v.Tuple, v.Ticks)
			}
		}
		for _, v := range g.Refused {
			bits, err := strconv.ParseUint(v.Bits, 16, 64)
			require.NoError(t, err)
			if tuple, _, err := l.Decode(math.Float64frombits(bits)); err == nil {
				t.Errorf("%v: %s was taken for %v", l, v.Text, tuple)
			}
		}
	}
}
