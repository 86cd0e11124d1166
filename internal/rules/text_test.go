package rules

import (
	"testing"

	"github.com/standings/standings/internal/codec"
)

func TestARuleIsReadFromItsText(t *testing.T) {
	for want, r := range map[string]Rule{
		"best(stage:999,revives:99:fewest)": mustRule(t, Best, arena...),
		"last(elo:4000:signed)":             mustRule(t, Last, codec.Field{Name: "elo", Max: 4000, Signed: true}),
		"last(lap_ms:600000:fewest)":        mustRule(t, Last, codec.Field{Name: "lap_ms", Max: 600_000, Fewest: true}),
		"sum(a:5:signed:fewest)":            mustRule(t, Sum, codec.Field{Name: "a", Max: 5, Signed: true, Fewest: true}),
	} {
		if got := r.Text(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		got, err := ParseRule(want)
		if err != nil || got != r {
			t.Errorf("%s is read as %+v, %v", want, got, err)
		}
	}
}

func TestWhatIsNoTextOfARuleIsRefused(t *testing.T) {
	for _, text := range []string{
		"", "best", "best()", "best(stage)", "best(stage:x)", "best(stage:999", "worst(stage:999)", "best(stage:0)", "best(stage:999) ",
		"best(stage:0999)", "best(stage:999:most)", "best(stage:999,stage:99)", "sum(a:9:signed,b:9)", "best(stage:999:fewest:fewest)",
	} {
		if r, err := ParseRule(text); err == nil {
			t.Errorf("%q is read as %+v", text, r)
		}
	}
}

func TestABoardThatIsNotNamedHasTheRuleForThose(t *testing.T) {
	r := mustRule(t, Best, arena...)
	b := Boards{"arena": &r, "global": nil}
	if b.Of("arena") != &r || b.Of("global") != nil || b.Of("eu") != nil {
		t.Errorf("%v", b)
	}
	b[AnyBoard] = &r
	if b.Of("global") != nil || b.Of("eu") != &r {
		t.Errorf("%v", b)
	}
	if Boards(nil).Of("eu") != nil {
		t.Error("no rules are the default rule")
	}
}
