package check

// judgeStandings checks the content of Redis under the prefix.

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ledger/workers"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/units"
	"github.com/standings/standings/internal/zoneinfo"
)

func judgeStandings(s *section, f *redisFacts, topics []string) {
	if f.state == nil {
		for _, check := range []string{"schema", "ledger", "consumer"} {
			s.unchecked(check, "", f.noState.Error(), "")
		}
		return
	}
	judgeSchema(s, f)
	judgeLedger(s, f.state, topics)
	judgeBoards(s, f, topics)
	judgeRules(s, f)
	judgeWorkers(s, f.state)
	judgeZones(s, f.state, zoneinfo.Current().Version)
}

// judgeZones warns if the running consumers and this program have different time zone data.
func judgeZones(s *section, st *ledger.State, own string) {
	if all := workers.TimeZoneData(st); len(all) > 1 || len(all) == 1 && all[0] != own {
		s.warn("time_zone_data", "", fmt.Sprintf("the running consumers have the time zone data %s, and this program %s", strings.Join(all, ", "), own),
			"give all of them the same version of the program, or of the system's data")
	}
}

const rebuildOrRestore = "rebuild the boards from the log (consumer rebuild), or restore a backup of Redis"

// judgeBoards checks whether Redis has the key of every listed window, and whether boards are being
// refilled.
func judgeBoards(s *section, f *redisFacts, topics []string) {
	const check = "boards"
	progress := workers.Of(f.state, topics)
	switch {
	case f.lostErr != nil:
		s.unchecked(check, "", f.lostErr.Error(), "")
	case len(f.lost) > 0:
		s.wrong(check, "", fmt.Sprintf("%s listed without a key in Redis; a partition with an event for one halts (board_lost): %s",
			units.Plural(int64(len(f.lost)), "window"), units.Names(f.lost)),
			rebuildOrRestore)
	case len(progress.Refilling) > 0:
		s.warn(check, "", fmt.Sprintf("refilling after Redis was lost or the boards were rebuilt: %s still to read; until then boards are partial",
			units.Plural(progress.Left(), "record")), "wait, or restore a backup of Redis")
	case f.state.Windows > 0:
		s.ok(check, "", "every window that is listed has its key")
	}
}

// judgeRules checks whether every listed window was written under the current rule of its board.
func judgeRules(s *section, f *redisFacts) {
	const check = "rules"
	switch {
	case f.othersErr != nil:
		s.unchecked(check, "", f.othersErr.Error(), "")
	case len(f.others) > 0:
		var names []string
		for _, e := range f.others {
			names = append(names, e.Window)
		}
		first := f.others[0]
		s.wrong(check, "", fmt.Sprintf("%s written by another rule than the configured one; a partition with an event for one halts (board_rule): %s; the first by %s, configured is %s",
			units.Plural(int64(len(names)), "window"), units.Names(names), ranking.RuleName(first.Found), ranking.RuleName(first.Wanted)),
			"restore the rule, use the new one for a board with another name, or rebuild the windows (consumer rebuild --board)")
	case f.state.Windows > 0:
		s.ok(check, "", "every window that is listed was written by its board's rule")
	}
}

func judgeSchema(s *section, f *redisFacts) {
	const check = "schema"
	switch other, ok := errors.AsType[*ranking.SchemaError](f.difference); {
	case ok && len(other.Missing()) > 0:
		s.wrong(check, "", "the standings there also have the periods "+units.Names(other.Missing())+", which this configuration lacks: a consumer with it stops",
			ranking.AddMissing)
	case ok:
		s.wrong(check, "", "the standings there were written with another configuration: "+strings.Join(other.Differences(), "; "),
			"restore it, or use another redis.prefix and kafka.group for the new configuration")
	case f.difference != nil:
		s.wrong(check, "", f.difference.Error(), "")
	case len(f.added) > 0:
		judgeAdded(s, check, f.added)
	case f.state.Schema == "":
		s.ok(check, "", "none yet: the first start writes it")
	default:
		s.ok(check, "", "the standings there were written with this configuration")
	}
}

// judgeAdded reports the periods that a start would add, and those with windows that will be incomplete.
func judgeAdded(s *section, check string, added []ledger.Added) {
	var all, late []string
	since := int64(0)
	for _, a := range added {
		all = append(all, a.String())
		if a.Since > 0 {
			late, since = append(late, a.String()), max(since, a.Since)
		}
	}
	text := "the start adds the periods " + units.Names(all) + "; consumers that are configured without them halt then"
	if len(late) == 0 {
		s.ok(check, "", text)
		return
	}
	s.warn(check, "", fmt.Sprintf("%s; the windows of %s that start before about %s are shown as incomplete until a rebuild",
		text, units.Names(late), utc(since)),
		"after the start, run consumer rebuild, which counts these windows from the log, as far as the log reaches back")
}

func judgeLedger(s *section, st *ledger.State, topics []string) {
	const check = "ledger"
	var torn, others []string
	for _, field := range slices.SortedFunc(maps.Keys(st.Ledger), ledger.CompareFields) {
		if _, err := ledger.Parse(st.Ledger[field]); err != nil {
			torn = append(torn, field)
		}
		id, err := ledger.ParsePartition(field)
		if err != nil {
			id.Topic = field
		}
		if !slices.Contains(topics, id.Topic) && !slices.Contains(others, id.Topic) {
			others = append(others, id.Topic)
		}
	}
	text := fmt.Sprintf("%s, %s listed", units.Plural(int64(len(st.Ledger)), "position"), units.Plural(int64(st.Windows), "window"))
	if len(st.Ledger) == 0 && st.Windows == 0 {
		text = "nothing yet"
	}
	before := len(s.all)
	if len(torn) > 0 {
		s.wrong(check, "", fmt.Sprintf("torn: a script died in the middle of a piece of %s", units.Names(torn)), rebuildOrRestore)
	}
	if len(others) > 0 {
		s.warn(check, "", fmt.Sprintf("the ledger has topics that are not configured: %s", units.Names(others)),
			"if another consumer writes here, use another redis.prefix; if topics were removed, their events stay in the boards")
	}
	if st.Held {
		s.warn(check, "", "a rebuild holds the boards: no events are applied until the swap or the expiry of its hold", "wait")
	}
	if len(s.all) == before {
		s.ok(check, "", text)
	}
}

// judgeWorkers reports the consumers that are running, because check may run next to them, and the halted
// partitions.
func judgeWorkers(s *section, st *ledger.State) {
	const check = "consumer"
	owners := map[string]bool{}
	halts := map[string][]string{} // halted partitions by reason
	lines := map[string]workers.Line{}
	for field, text := range st.Workers {
		var line workers.Line
		if json.Unmarshal([]byte(text), &line) != nil || st.Now.Sub(line.Time()) > workers.StaleAfter {
			continue
		}
		owners[line.Owner] = true
		if line.State == workers.StateHalted {
			halts[line.Reason], lines[field] = append(halts[line.Reason], field), line
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(halts)) {
		fields := slices.SortedFunc(slices.Values(halts[reason]), ledger.CompareFields)
		first := lines[fields[0]] // all of them have the same reason
		s.wrong(check, "", fmt.Sprintf("halted: %s (%s): %s", units.Names(fields), reason, first.What), first.Remedy)
	}
	if len(owners) == 0 {
		s.ok(check, "", "none has written here in the last "+units.FormatDuration(workers.StaleAfter))
		return
	}
	s.ok(check, "", fmt.Sprintf("running in the last %s: %s", units.FormatDuration(workers.StaleAfter), units.Names(slices.Sorted(maps.Keys(owners)))))
}
