package simulate

// This file gives some processes another version of the time zone rules, by which every clock is an hour
// ahead or behind. A window has the bounds that were settled by the first process with an event in it, and
// the oracle uses these bounds.

import (
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/zoneinfo"
)

// zonesFrom is the first seed of the worlds in which processes have two versions of the rules.
const zonesFrom = int64(1) << 44

const (
	bordersKey = "borders"

	otherZones    = "processes have two versions of time zone rules"
	settledByBoth = "borders were settled by both versions"
	boundsDiffer  = "apply answers bounds"
)

// zones gives every other process other rules.
func (p *plan) zones() {
	s := &p.setup
	s.Zones = true
	if s.Zone == "UTC" {
		s.Zone = "Europe/Berlin"
	}
}

// shifted reports whether a process has the other version.
func (p *process) shifted() bool { return p.w.setup.Zones && p.id%2 == 0 }

// in returns a calendar under the process's version of the rules.
func (p *process) in(zone, week string) (periods.Calendar, error) {
	if !p.shifted() {
		return periods.NewCalendar(zone, week)
	}
	by := 3600
	if p.w.plan.seed%4 < 2 {
		by = -by
	}
	return periods.CalendarIn(time.FixedZone(zone, offsetOf(zone)+by), week)
}

// offsetOf returns by how many seconds a zone's clocks are ahead of UTC when the world begins.
func offsetOf(zone string) int {
	loc, err := zoneinfo.Load(zone)
	if err != nil {
		panic(err)
	}
	_, offset := beginning.In(loc).Zone()
	return offset
}

func (p *process) rule(name string) periods.Rule { return p.w.ruleIn(name, p.in) }

func (p *process) calendar() periods.Calendar {
	c, err := p.in(p.w.setup.Zone, p.w.setup.WeekStart)
	if err != nil {
		panic(err)
	}
	return c
}

// borders returns the settled bounds of windows; all shards that know them must agree.
func (w *world) borders() map[string]int64 {
	all := map[string]int64{}
	for _, sh := range w.shards {
		some := map[string]int64{}
		for name, text := range sh.hash(bordersKey) {
			at, _, _ := strings.Cut(text, " ")
			ms, err := strconv.ParseInt(at, 10, 64)
			if err != nil {
				w.failf("the border %s is %q", name, text)
			}
			if other, known := all[name]; known && other != ms {
				w.failf("the border %s is %d in one shard, and %d%s", name, other, ms, sh.named())
			}
			some[name] = ms
		}
		maps.Copy(all, some)
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// bordersDiffer reports whether two shards have the same border at different instants. Processes never settle it so; it
// happens if masters lose data at different moments.
func (w *world) bordersDiffer() bool {
	if len(w.masters) == 1 || w.counts[wipe]+w.counts[rollback] == 0 {
		return false
	}
	known := map[string]string{}
	for _, sh := range w.shards {
		for name, text := range sh.hash(bordersKey) {
			at, _, _ := strings.Cut(text, " ")
			if other, ok := known[name]; ok && other != at {
				return true
			}
			known[name] = at
		}
	}
	return false
}

// noteZones counts the versions that settled bounds.
func (w *world) noteZones() {
	if !w.setup.Zones {
		return
	}
	w.count(otherZones)
	own, other := 0, 0
	for name, at := range w.borders() {
		words := strings.Split(name, " ")
		date, err := time.Parse(time.DateOnly, words[2])
		if err != nil {
			w.failf("the border %s has no date", name)
			continue
		}
		if begins := date.Unix() - int64(offsetOf(words[1])); begins*1000 == at {
			own++
		} else {
			other++
		}
	}
	if own > 0 && other > 0 {
		w.count(settledByBoth)
	}
}
