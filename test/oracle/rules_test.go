package oracle

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

// The golden vectors of tuples also come from exact arithmetic, but not from this package.
func TestScoresOfTuplesAreTheGoldenOnes(t *testing.T) {
	text, err := os.ReadFile("../../internal/codec/testdata/tuples.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Layouts []struct {
			Kind     string
			LengthMS int64 `json:"length_ms"`
			Fields   []Field
			Max, K   int64
			Tick     int64
			Scores   []struct {
				Tuple  []int64
				Ticks  int64
				Packed int64
				Bits   string
			}
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, g := range file.Layouts {
		b := Board{Score: "best", Fields: g.Fields}
		l := Config{}.layoutOf(Period{Layout: g.Kind, Every: g.LengthMS}, b)
		if int64(l.k) != g.K || l.tick != g.Tick || l.most.Int64() != g.Max {
			t.Errorf("%s %s: k %d, tick %d, up to %v; want %d, %d, %d", g.Kind, b.text(), l.k, l.tick, l.most, g.K, g.Tick, g.Max)
		}
		w := &window{end: g.LengthMS}
		for _, v := range g.Scores {
			s := &standing{time: g.LengthMS - 1 - v.Ticks*g.Tick, timed: true}
			if s.time < 0 {
				continue // no window of this length has that many ticks
			}
			copy(s.values[:], v.Tuple)
			bits, err := l.score(w, s)
			if text := fmt.Sprintf("%016x", bits); err != nil || text != v.Bits {
				t.Errorf("%s %s: %v with %d ticks is %s, %v; want %s", g.Kind, b.text(), v.Tuple, v.Ticks, text, err, v.Bits)
			}
			compared++
		}
	}
	if compared < 500 {
		t.Errorf("only %d scores were compared", compared)
	}
}
