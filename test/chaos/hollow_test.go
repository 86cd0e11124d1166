package chaos

// This file makes a run fail in which little happened, because it proves little and must not look like a
// success.

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// many is the number of tries from which the share of a kind that took effect is judged.
const many = 10

// hollow returns what is missing for a meaningful comparison with the oracle: events, repeats, standings,
// hidden standings, wrong clocks, faults, and for each kind that was tried often, that at least half of the
// tries took effect.
func (r *Report) hollow() []string {
	var lacks []string
	if len(r.Modes) == 0 {
		lacks = append(lacks, "no mode was run")
	}
	for _, m := range r.Modes {
		if m.Events.InLog == 0 {
			lacks = append(lacks, m.Mode+": no event was in the log")
		}
		if m.Standings == 0 {
			lacks = append(lacks, m.Mode+": no standing was compared")
		}
		if m.Events.Repeats == 0 {
			lacks = append(lacks, m.Mode+": no event was a repeat")
		}
		if m.Hidden == 0 {
			lacks = append(lacks, m.Mode+": no banned member's standing was compared")
		}
		if m.Final == 0 {
			lacks = append(lacks, m.Mode+": no final window was compared with the archive")
		}
		if r.Consumer == builtHere && min(m.Clocks.Behind, m.Clocks.Ahead) < 1 {
			lacks = append(lacks, m.Mode+": no consumer's clock was behind, or none ahead")
		}
		if !slices.ContainsFunc(m.Faults, func(f FaultReport) bool { return f.TookEffect > 0 }) {
			lacks = append(lacks, m.Mode+": no fault took effect")
		}
	}
	for _, f := range r.merge() {
		if f.Tried >= many && 2*f.TookEffect < f.Tried {
			lacks = append(lacks, fmt.Sprintf("%s: of %d tries only %d took effect", f.Kind, f.Tried, f.TookEffect))
		}
	}
	return lacks
}

// full returns a run that lacks nothing.
func full() *Report {
	return &Report{Consumer: builtHere, Modes: []ModeReport{{
		Mode: plain, Events: Events{InLog: 1, Repeats: 1}, Standings: 1, Hidden: 1, Final: 1, Clocks: Clocks{Behind: 60, Ahead: 60},
		Faults: []FaultReport{{Kind: rebuildEnds, Tried: many, TookEffect: many / 2}},
	}}}
}

func TestARunInWhichNothingHappenedFails(t *testing.T) {
	t.Parallel()
	if lacks := full().hollow(); len(lacks) > 0 {
		t.Errorf("a run with all of it lacks %q", lacks)
	}
	for name, c := range map[string]struct {
		change func(*Report)
		lacks  string
	}{
		"nothing at all":  {func(r *Report) { r.Modes = nil }, "no mode was run"},
		"an empty mode":   {func(r *Report) { r.Modes = append(r.Modes, ModeReport{Mode: rdb}) }, "rdb: no fault took effect"},
		"no events":       {func(r *Report) { r.Modes[0].Events = Events{Published: 9} }, "plain: no event was in the log"},
		"no standings":    {func(r *Report) { r.Modes[0].Standings = 0 }, "plain: no standing was compared"},
		"no repeats":      {func(r *Report) { r.Modes[0].Events.Repeats = 0 }, "plain: no event was a repeat"},
		"nobody hidden":   {func(r *Report) { r.Modes[0].Hidden = 0 }, "plain: no banned member's standing was compared"},
		"nothing final":   {func(r *Report) { r.Modes[0].Final = 0 }, "plain: no final window was compared with the archive"},
		"right clocks":    {func(r *Report) { r.Modes[0].Clocks.Behind = 0 }, "plain: no consumer's clock was behind, or none ahead"},
		"no faults":       {func(r *Report) { r.Modes[0].Faults = nil }, "plain: no fault took effect"},
		"faults in vain":  {func(r *Report) { r.Modes[0].Faults[0].TookEffect = 0 }, "plain: no fault took effect"},
		"a kind often so": {func(r *Report) { r.Modes[0].Faults[0].TookEffect-- }, "rebuild: to its end: of 10 tries only 4 took effect"},
		"a kind in two modes so": {func(r *Report) {
			r.Modes = append(r.Modes, full().Modes[0])
			r.Modes[1].Faults[0].TookEffect--
		}, "rebuild: to its end: of 20 tries only 9 took effect"},
	} {
		r := full()
		c.change(r)
		lacks := strings.Join(r.hollow(), "\n")
		if !strings.Contains(lacks, c.lacks) {
			t.Errorf("%s: it lacks %q, want %q", name, lacks, c.lacks)
		}
	}
}
