package shadow

// How a swap changes origins, and what it requires the operator to accept. A window that lacks events is
// still shown as incomplete, and a window that cannot be completed is not replaced silently.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/rules"
)

// RefusedError reports that a rebuild may not swap, with the remedies.
type RefusedError struct{ Reasons []string }

func (e *RefusedError) Error() string { return strings.Join(e.Reasons, "\n") }

// newOrigins returns the origins that the swap writes, computed from the live ones and the shadow's.
//
// A reader shows a window as incomplete if the window starts before the origin of any partition.
//
//   - Replaced windows start at From or later, and From is at or after every origin of the shadow. So they are
//     complete, and any new origin up to From leaves them complete.
//   - Kept windows lack the events that they lacked before. One that starts before a live origin must also
//     start before the new one. Most kept windows start before From, so a live origin may decrease to From,
//     but no lower. A kept window that starts later, such as one that has ended only by today's retention,
//     limits the decrease to just after its start.
//   - If kept windows may lack more events than before, the origins of the partitions concerned increase to
//     From, or to just after the start of such a window. Only then may a complete window be shown as incomplete.
func (p *Plan) newOrigins(c Choice, was, since map[string]ledger.Origin) map[string]string {
	write := map[string]string{}
	until := p.From // every incomplete window starts before this
	for i := range p.Windows {
		if w := &p.Windows[i]; w.Incomplete {
			until = max(until, w.Start+1)
		}
	}
	whole := len(c.Boards) == 0
	for field, o := range since {
		had, ok := was[field]
		down := until
		for i := range p.Windows {
			if w := &p.Windows[i]; w.Action == Kept && w.Start < had.Time {
				down = max(down, w.Start+1)
			}
		}
		switch concerned := p.concerns(field, o); {
		case p.Orphaned && !concerned:
			write[field] = o.String()
		case concerned && (!ok || had.Time < until):
			write[field] = ledger.Origin{Offset: o.Offset, Time: until, Log: o.Log}.String()
		case whole && ok && had.Time > down:
			write[field] = ledger.Origin{Offset: o.Offset, Time: down, Log: o.Log}.String()
		case whole && ok && had.Log != o.Log: // the events that now count were read from a later leader
			had.Log = o.Log
			write[field] = had.String()
		}
	}
	return write
}

// newSince returns the times that the swap writes for periods that were added to the live boards: the time
// from which each is counted. Replaced windows contain the events from before the period was added. Kept
// windows lack the same events as before, and so do windows that are left out and begin later.
func (p *Plan) newSince(c Choice, was map[string]int64) map[string]int64 {
	write := map[string]int64{}
	before := &ledger.State{Since: was}
	for key, had := range was {
		board, period, listed := strings.Cut(key, ":")
		if !listed {
			board, period = "", key
		}
		since := p.From
		for i := range p.Windows {
			w := &p.Windows[i]
			stays := w.Action == Kept || w.Action == LeftOut
			concerned := w.Period == period && (!listed || board == w.Board || board == rules.AnyBoard)
			if concerned && (w.Incomplete || stays && w.Start < min(had, ranking.CountedSince(before, w.Board, period))) {
				since = max(since, w.Start+1)
			}
		}
		if _, others := was[ledger.SinceKey(rules.AnyBoard, period)]; others && listed && board != rules.AnyBoard && since == 0 {
			since = counted // without an entry of its own, the board would get that of the other boards
		}
		if since < had && (len(c.Boards) == 0 || listed && slices.Contains(c.Boards, board)) {
			write[key] = since
		}
	}
	return write
}

// counted is the time written for a period that a board counted from the beginning. swap.lua removes an
// entry of 0.
const counted = -1

// concerns reports whether a window that is kept, or replaced in part, may lack events of a partition whose
// origin in the shadow is since.
func (p *Plan) concerns(field string, since ledger.Origin) bool {
	return slices.ContainsFunc(p.Windows, func(w Planned) bool {
		switch {
		case !w.Incomplete:
			return false
		case w.Action == Kept:
			return p.Orphaned || slices.Contains(p.Torn, field)
		}
		return w.Start < since.Time
	})
}

func (p *Plan) refuse(c Choice) {
	var suspect, lost, over, stray []string
	for i := range p.Windows {
		w := &p.Windows[i]
		switch {
		case w.Action == Kept && w.over && w.Lost:
			over = append(over, w.Listing())
		case w.Action == Kept && w.old && w.Lost:
			lost = append(lost, w.Listing())
		case w.Action == LeftOut && w.old && w.stray:
			stray = append(stray, w.Listing())
		case w.Action == Kept && w.Incomplete:
			suspect = append(suspect, w.Listing())
		}
	}
	broken := ""
	switch {
	case len(p.Torn) > 0:
		broken = "a piece of " + strings.Join(p.Torn, ", ") + " was written in part"
	case p.Orphaned:
		broken = "the ledger is lost, so the events that the boards contain are unknown"
	}
	if broken != "" && len(c.Boards) > 0 {
		p.Refused = append(p.Refused, broken+": that can't be settled for some boards only, rebuild all of them")
	}
	if c.AcceptIncomplete {
		return
	}
	if broken != "" && len(suspect) > 0 {
		p.Refused = append(p.Refused, broken+", and the log doesn't reach back to the beginning of "+several(suspect)+
			", which may lack events or have them twice: to keep as it is what can't be rebuilt, and have it shown as incomplete, accept that (--accept-incomplete)")
	}
	if len(lost) > 0 {
		p.Refused = append(p.Refused, "Redis has lost "+several(lost)+", and the log doesn't reach back to the beginning: "+
			"to rebuild what it has, and have it shown as incomplete, accept that (--accept-incomplete)")
	}
	if len(stray) > 0 {
		p.Refused = append(p.Refused, "Redis has the keys of "+several(stray)+" and doesn't list them, and the log doesn't reach back to the beginning: "+
			"to put what it has in their place, and have it shown as incomplete, accept that (--accept-incomplete)")
	}
	if len(over) > 0 {
		p.Refused = append(p.Refused, "Redis has lost "+several(over)+", and the log isn't read for what is over by today's retention: "+
			"to have them dropped, accept that (--accept-incomplete)")
	}
}

// several joins the names, shortened to the first ten.
func several(all []string) string {
	const most = 10
	if len(all) <= most {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
}
