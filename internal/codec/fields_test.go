// The fields that a board may have.

package codec

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func mustFields(t rapid.TB, list ...Field) Fields {
	t.Helper()
	f, err := NewFields(list...)
	require.NoError(t, err)
	return f
}

var (
	arena  = []Field{{Name: "stage", Max: 999}, {Name: "revives", Max: 99, Fewest: true}}
	lap    = []Field{{Name: "lap_ms", Max: 3_599_999, Fewest: true}}
	medals = []Field{{Name: "gold", Max: 9999}, {Name: "silver", Max: 9999}, {Name: "bronze", Max: 9999}}
	points = []Field{{Name: "points", Max: 99_999_999, Signed: true}}
	golf   = []Field{{Name: "over_par", Max: 999, Signed: true, Fewest: true}}
)

// fieldSets draws fields that fit a kind of layout, often at its limit.
func fieldSets(kind Kind) *rapid.Generator[Fields] {
	return rapid.Custom(func(t *rapid.T) Fields {
		n := rapid.IntRange(1, MaxFields).Draw(t, "fields")
		signed := n == 1 && rapid.Bool().Draw(t, "signed")
		room := int64(widest)
		if kind == Wide && !signed {
			room = widestUnsigned
		}
		list := make([]Field, n)
		for i := range list {
			list[i] = Field{Name: string(rune('a' + i)), Max: 1, Signed: signed, Fewest: rapid.Bool().Draw(t, "fewest")}
		}
		for _, i := range rapid.Permutation(list).Draw(t, "order") {
			at := int(i.Name[0] - 'a')
			one := func(limit int64) Fields {
				l := slices.Clone(list)
				l[at].Max = limit
				return mustFields(t, l...)
			}
			// Find the largest max that fits by bisection, independently of wouldFit.
			low, high := int64(1), room
			for low < high {
				middle := low + (high-low+1)/2
				if _, ok := pack(kind, one(middle)); ok {
					low = middle
				} else {
					high = middle - 1
				}
			}
			bits := rapid.IntRange(0, 53).Draw(t, "bits")
			list[at].Max = near(1, min(low, 1<<bits)).Draw(t, "max")
		}
		return mustFields(t, list...)
	})
}

func drawTuple(t *rapid.T, f Fields, label string) Tuple {
	var values Tuple
	for i := range f.n {
		low := int64(0)
		if f.of[i].Signed {
			low = -f.of[i].Max
		}
		values[i] = near(low, f.of[i].Max).Draw(t, label)
	}
	return values
}

func TestABoardHasOneToFiveFieldsOfDifferentNamesAndRanges(t *testing.T) {
	for _, list := range [][]Field{arena, lap, medals, points, golf,
		{{Name: "_", Max: 1}}, {{Name: strings.Repeat("a", 64), Max: 1}}, {{Name: "Z9_", Max: 1 << 62}}} {
		f := mustFields(t, list...)
		if f.Len() != len(list) || !slices.Equal(f.List(), list) {
			t.Errorf("%v became %v", list, f.List())
		}
		for i, field := range list {
			if f.Index(field.Name) != i || f.At(i) != field {
				t.Errorf("%s isn't field %d of %v", field.Name, i, f)
			}
		}
		if f.Index("other") != -1 || f.Index("") != -1 {
			t.Errorf("%v has fields it doesn't have", f)
		}
	}
	for says, list := range map[string][]Field{
		"0 fields: a board must have 1 to 5":                                 {},
		"6 fields: a board must have 1 to 5":                                 {{Name: "a", Max: 1}, {Name: "b", Max: 1}, {Name: "c", Max: 1}, {Name: "d", Max: 1}, {Name: "e", Max: 1}, {Name: "f", Max: 1}},
		`field "": a name must have`:                                         {{Max: 1}},
		`field "9a": a name must have`:                                       {{Name: "9a", Max: 1}},
		`field "a.b": a name must have`:                                      {{Name: "a.b", Max: 1}},
		`field "ä": a name must have`:                                        {{Name: "ä", Max: 1}},
		`field "a[": a name must have`:                                       {{Name: "a[", Max: 1}},
		`field "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": a name must have`: {{Name: strings.Repeat("a", 65), Max: 1}},
		"field a: max 0: must be at least 1":                                 {{Name: "a"}},
		"field a: max -5: must be at least 1":                                {{Name: "a", Max: -5}},
		"field b: only a board's single field can be signed":                 {{Name: "a", Max: 5}, {Name: "b", Max: 5, Signed: true}},
		"field a: duplicate name":                                            {{Name: "a", Max: 5}, {Name: "b", Max: 5}, {Name: "a", Max: 6}},
	} {
		f, err := NewFields(list...)
		if err == nil || !strings.HasPrefix(err.Error(), says) || f != (Fields{}) {
			t.Errorf("NewFields(%v) = %v, %v; want it to say %q", list, f, err, says)
		}
	}
}
