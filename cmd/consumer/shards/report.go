// Package shards reports the state of each shard if there are several: its ledger, and its master.
package shards

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/terminal"
	"github.com/standings/standings/internal/units"
)

// Report is the state of one of several shards; fields that could not be read are null.
type Report struct {
	Shard  int               `json:"shard"`  // from 0
	Master *string           `json:"master"` // host:port, if the client knows it
	Ledger map[string]string `json:"ledger"` // "<topic>/<partition>" -> position
	// Behind is the number of records by which this shard's positions are behind those of the shard that is
	// furthest ahead, over all partitions. A shard without changes is advanced every second.
	Behind  *int64  `json:"behind"`
	Windows *int    `json:"windows"` // number of listed windows
	Held    *bool   `json:"held"`
	Problem *string `json:"problem"` // why the shard could not be read, or what it lacks

	late []string // positions that are behind, for people
}

// Reports returns the reports of all shards, from their states and errors; nil if there is only one shard.
func Reports(stores []*ranking.Store, states []ledger.State, errs []error) []Report {
	if len(stores) == 1 {
		return nil
	}
	furthest := map[string]int64{}
	counted := false
	for _, st := range states {
		counted = counted || hasCounted(&st)
		for field, text := range st.Ledger {
			if at, err := ledger.Counted(text); err == nil {
				furthest[field] = max(furthest[field], at.From)
			}
		}
	}
	var all []Report
	for i, store := range stores {
		r := Report{Shard: i}
		if addr := store.Addr(); addr != "" {
			r.Master = &addr
		}
		if err := errs[i]; err != nil {
			r.Problem = new(problemOf(err))
		} else {
			r.add(&states[i], furthest, counted)
		}
		all = append(all, r)
	}
	return all
}

// problemOf returns the error without the shard's name, which is shown next to it.
func problemOf(err error) string {
	if shard, ok := errors.AsType[*ranking.ShardError](err); ok {
		err = shard.Err
	}
	return strings.ReplaceAll(err.Error(), "\n", " ")
}

// add adds the state of a shard. furthest holds the furthest position of any shard by partition; counted
// tells whether any shard has counted something.
func (r *Report) add(st *ledger.State, furthest map[string]int64, counted bool) {
	r.Ledger, r.Windows, r.Held, r.Behind = st.Ledger, &st.Windows, &st.Held, new(int64)
	for _, field := range slices.SortedFunc(maps.Keys(furthest), ledger.CompareFields) {
		text, there := st.Ledger[field]
		at, err := ledger.Counted(text)
		switch {
		case !there:
			r.late = append(r.late, field+" has no position")
		case err != nil || strings.HasPrefix(text, ledger.TornMark) || at.From < furthest[field]:
			r.late = append(r.late, field+" "+Brief(terminal.Plain(text)))
		}
		*r.Behind += furthest[field] - at.From
	}
	if counted && st.Schema == "" {
		r.Problem = new("it is empty, while other shards are not")
	}
}

// hasCounted reports whether a shard has progressed from its origin. Shards start one after another, and
// nothing is read before all of them have started.
func hasCounted(st *ledger.State) bool {
	if st.Windows > 0 {
		return true
	}
	for field, text := range st.Ledger {
		origin, err := ledger.ParseOrigin(st.Origins[field])
		if err != nil || text != ledger.At(origin.Offset).String() {
			return true
		}
	}
	return false
}

// Brief shortens a sweep's hash, which means nothing to a person.
func Brief(position string) string {
	const shown = 4
	if at := strings.IndexByte(position, '@'); at >= 0 && len(position) > at+1+shown {
		return position[:at+1+shown] + "…"
	}
	return position
}

// Lines returns a table of the shards; nil if there are no reports.
func Lines(all []Report) []string {
	if len(all) == 0 {
		return nil
	}
	t := terminal.NewTable("SHARD", "MASTER", "WINDOWS", "BEHIND", "POSITIONS THAT ARE BEHIND")
	t.Right[0], t.Right[2], t.Right[3] = true, true, true
	for _, r := range all {
		master, windows, behind := "-", "-", "-"
		if r.Master != nil {
			master = terminal.Plain(*r.Master)
		}
		if r.Behind != nil {
			windows, behind = units.Thousands(int64(*r.Windows)), units.Thousands(*r.Behind)
		}
		var notes []string
		if r.Problem != nil {
			notes = append(notes, terminal.Plain(*r.Problem))
		} else if len(r.late) > 0 {
			notes = append(notes, units.Names(r.late))
		}
		if r.Held != nil && *r.Held {
			notes = append(notes, "held")
		}
		t.Add(fmt.Sprint(r.Shard), master, windows, behind, strings.Join(notes, "; "))
	}
	return t.Lines()
}
