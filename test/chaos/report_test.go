package chaos

// This file reports the results of a run.

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// Report is the report of a whole run.
type Report struct {
	Seed    uint64
	Seconds float64 // of faults, over all modes
	Machine string
	Kafka   string
	Redis   string
	Modes   []ModeReport
	Lacks   []string // what the run lacks to be meaningful; each entry fails the run
}

// ModeReport is the report of one mode.
type ModeReport struct {
	Mode   string
	Faults []FaultReport // by kind
	Events Events
	// Consumers is the number of processes that were started; Ended holds the last log lines of those that
	// ended by themselves.
	Consumers   int
	Ended       []string
	Halts       map[string]int // by reason; all were overcome if there is no difference
	Rebalances  int
	Sweeps      int
	Boards      int // compared
	Standings   int
	Hidden      int // standings of banned members, also compared
	Final       int // windows, also compared with the archive
	Meanwhile   int // of these, final while events arrived
	Letters     int
	Differences []string
	// Wrong lists failures other than differences at the end: a recovery or a rebuild that took too long.
	Wrong []string
	Logs  string // a directory, if there is a difference
}

// FaultReport is about one kind of fault, and the rounds in which it came first and had an effect. The
// influence of a second fault in a round on their times is not separated.
type FaultReport struct {
	Kind       string
	Tried      int
	TookEffect int
	// Recovery is the time from the fault's end until everything counts that the log had then.
	Recovery Times
	Effect   string // the last effect
}

// Times summarizes several rounds.
type Times struct {
	Rounds int
	Median float64
	Worst  float64

	all []time.Duration
}

func (t *Times) add(more ...time.Duration) {
	t.all = append(t.all, more...)
	if len(t.all) == 0 {
		return
	}
	slices.Sort(t.all)
	t.Rounds = len(t.all)
	t.Median, t.Worst = t.all[len(t.all)/2].Seconds(), t.all[len(t.all)-1].Seconds()
}

func (t *Times) String() string {
	if t.Rounds == 0 {
		return "-\t-"
	}
	return fmt.Sprintf("%.1f s\t%.1f s", t.Median, t.Worst)
}

// Events counts records by the producers' knowledge and the log's content.
type Events struct {
	Published int
	Committed int
	Aborted   int
	Unknown   int // without a reliable response
	InLog     int // visible to a read_committed reader
	Bad       int
	Late      int
	Empty     int // tombstones
	Repeats   int
}

// add records a fault.
func (m *ModeReport) add(kind, effect string) *FaultReport {
	i := slices.IndexFunc(m.Faults, func(f FaultReport) bool { return f.Kind == kind })
	if i < 0 {
		i = len(m.Faults)
		m.Faults = append(m.Faults, FaultReport{Kind: kind})
	}
	f := &m.Faults[i]
	f.Tried++
	if effect != "" {
		f.TookEffect++
		f.Effect = effect
	}
	return f
}

// merge returns the kinds of all modes, in the order of the list of faults.
func (r *Report) merge() []FaultReport {
	all := ModeReport{}
	for _, f := range faults {
		for _, m := range r.Modes {
			for _, g := range m.Faults {
				if g.Kind != f.kind {
					continue
				}
				into := all.add(f.kind, g.Effect)
				into.Tried += g.Tried - 1
				into.TookEffect += g.TookEffect
				if g.Effect != "" {
					into.TookEffect--
				}
				into.Recovery.add(g.Recovery.all...)
			}
		}
	}
	return all.Faults
}

// wrong returns the number of failures in all modes.
func (r *Report) wrong() int {
	n := len(r.Lacks)
	for _, m := range r.Modes {
		n += len(m.Differences) + len(m.Wrong)
	}
	return n
}

// write writes the report as text.
func (r *Report) write(w io.Writer) {
	fmt.Fprintf(w, "\nChaos: seed %d, %.0f s of faults, %s\n%s; %s\n\n", r.Seed, r.Seconds, r.Machine, r.Kafka, r.Redis)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "FAULT\tTRIED\tTOOK EFFECT\tRECOVERED AFTER\tWORST\tFOR INSTANCE")
	tried, took := 0, 0
	for _, f := range r.merge() {
		fmt.Fprintf(t, "%s\t%d\t%d\t%v\t%s\n", f.Kind, f.Tried, f.TookEffect, &f.Recovery, f.Effect)
		tried, took = tried+f.Tried, took+f.TookEffect
	}
	fmt.Fprintf(t, "all\t%d\t%d\n", tried, took)
	_ = t.Flush()
	for _, m := range r.Modes {
		fmt.Fprintf(w, "\n%s: %d standings and %d hidden ones on %d boards, %d final windows, %d dead letters; %d differences, %d other failures\n",
			m.Mode, m.Standings, m.Hidden, m.Boards, m.Final, m.Letters, len(m.Differences), len(m.Wrong))
		fmt.Fprintf(w, "  %+v\n", m.Events)
		fmt.Fprintf(w, "  %d consumers, %d generations, %d sweeps continued, halts %v\n", m.Consumers, m.Rebalances, m.Sweeps, m.Halts)
	}
	for _, l := range r.Lacks {
		fmt.Fprintf(w, "\nFAILED: %s", l)
	}
	for _, m := range r.Modes {
		for _, e := range m.Ended {
			fmt.Fprintf(w, "\n%s: ended by itself: %s", m.Mode, strings.TrimSpace(e))
		}
		for _, d := range m.Wrong {
			fmt.Fprintf(w, "\n%s: FAILED: %s", m.Mode, strings.TrimSpace(d))
		}
		for _, d := range m.Differences {
			fmt.Fprintf(w, "\n%s: DIFFERENCE: %s", m.Mode, strings.TrimSpace(d))
		}
		if m.Logs != "" {
			fmt.Fprintf(w, "\n%s: what the consumers said is in %s", m.Mode, m.Logs)
		}
	}
	fmt.Fprintln(w)
}

// many is the number of tries from which the share of a kind that took effect is judged.
const many = 10

// hollow returns what is missing for a meaningful comparison with the oracle: events, repeats, standings,
// hidden standings, faults, and for each kind that was tried often, that at least half of the
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
	return &Report{Modes: []ModeReport{{
		Mode: plain, Events: Events{InLog: 1, Repeats: 1}, Standings: 1, Hidden: 1, Final: 1,
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
