package shadow

// The plan of a rebuild: which windows it replaces, and which it keeps because the log does not reach back
// to their beginning.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/lua"
)

// Choice is the scope of a rebuild.
type Choice struct {
	Boards []string // boards to replace; none means all
	// AcceptIncomplete continues although a window that is kept, or replaced in part, lacks events. The
	// window is then shown as incomplete.
	AcceptIncomplete bool
}

// Action is a rebuild's treatment of a window.
type Action int

const (
	// Replaced: the window gets the standings that the log gives.
	Replaced Action = iota
	// Dropped: by the log, the window has no members.
	Dropped
	// Kept: the window stays as it is.
	Kept
	// LeftOut: the window does not exist now, and the swap does not create it.
	LeftOut
)

var actions = [...]string{"replaced", "dropped", "kept", "left out"}

func (f Action) String() string { return actions[f] }

// Planned is the action on a window, with the reason.
type Planned struct {
	ledger.Window

	Action Action
	Why    string // the reason that the window is not replaced; empty if it is
	Lost   bool   // it is listed, but a required key is gone
	// Incomplete: after the swap the window lacks, or may lack, events that the log no longer has.
	Incomplete bool

	listing string // the listing to write; empty if none is written
	old     bool   // kept only because of the log's start: AcceptIncomplete may replace it
	over    bool   // alive by its listing, but over by today's retention
	stray   bool   // its key exists, but it is not listed
	opens   bool   // it has neither a listing nor a key
	final   bool   // the window is kept because it is final
	// otherRule: the live window was written by another rule of its board.
	otherRule bool
}

// Plan lists the actions of a rebuild as of one moment.
type Plan struct {
	Windows []Planned // by board, period and start
	// From is the time from which the log was read in every partition, Unix ms. Windows that start earlier
	// are kept.
	From int64
	// Torn lists the partitions with a piece that was written in part.
	Torn []string
	// Orphaned: the live ledger is empty.
	Orphaned bool
	// Refused lists the reasons that the plan may not be carried out; empty if it may.
	Refused []string

	Live   map[string]string // the live ledger
	Shadow map[string]string // the shadow's ledger

	origins map[string]string // origins to write
	since   map[string]int64  // times to write, of periods that were added; 0 removes an entry
	listed  int               // number of windows that the shadow lists
	// liveListed is the number of windows that the live boards list; takesOver means that the swap runs
	// without a hold.
	liveListed int
	takesOver  bool
	boards     map[string]bool // boards that have a window in the live listing
}

// Plan returns what Swap would do if both ledgers were at the live ledger's positions. Until the shadow has
// read that far, the plan lacks windows that are only in the unread part of the log, and it drops no
// window.
func (r *Rebuild) Plan(ctx context.Context, c Choice) (*Plan, error) {
	p, err := r.plan(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("plan the rebuild of %q: %w", r.live.Prefix(), err)
	}
	if p.apart() == nil {
		return p, nil
	}
	for i := range p.Windows {
		if p.Windows[i].Action == Dropped {
			p.Windows[i].Action = Replaced
		}
	}
	return p, nil
}

// plan makes a plan, and starts again, at most twice, if Redis was rolled back meanwhile.
func (r *Rebuild) plan(ctx context.Context, c Choice) (p *Plan, err error) {
	for range 3 {
		if p, err = r.planned(ctx, c); !errors.Is(err, errFewer) {
			break
		}
	}
	return p, err
}

func (r *Rebuild) planned(ctx context.Context, c Choice) (*Plan, error) {
	live, shadow, now, err := r.both(ctx)
	if err != nil {
		return nil, err
	}
	if shadow.schema == swappedMark {
		return nil, errSwapped
	}
	if err := r.whole(&shadow); err != nil {
		return nil, err
	}
	if live.schema == "" && len(live.ledger) > 0 {
		k := r.live.Keys()
		return nil, ranking.Faultf("there is a ledger, %s, and no %s: the configuration that wrote the scores is unknown. "+
			"Restore a backup of Redis, or delete %[1]s: the offsets of the consumers' group stand for it then", k.Ledger(), k.Schema())
	}
	if live.schema != r.live.Schema() && live.schema != "" {
		return nil, &ranking.SchemaError{Prefix: r.live.Prefix(), Wanted: r.live.Schema(), Found: live.schema}
	}
	p := &Plan{Live: live.ledger, Shadow: shadow.ledger, Orphaned: len(live.ledger) == 0, listed: shadow.windows}
	for field, text := range live.ledger {
		if strings.HasPrefix(text, ledger.TornMark) {
			p.Torn = append(p.Torn, field)
		}
	}
	slices.Sort(p.Torn)
	since, err := origins(shadow.origins)
	if err != nil {
		return nil, err
	}
	for field := range shadow.ledger {
		if _, ok := since[field]; !ok {
			return nil, ranking.Faultf("the shadow has no origin of %s", field)
		}
	}
	for _, o := range since {
		p.From = max(p.From, o.Time)
	}
	if err := r.decide(ctx, p, c, &live, &shadow, now); err != nil {
		return nil, err
	}
	p.limit(r.live.MaxWindows(), live.windows)
	was, err := origins(live.origins)
	if err != nil {
		return nil, err
	}
	p.origins, p.since = p.newOrigins(c, was, since), p.newSince(c, live.since)
	p.refuse(c)
	return p, nil
}

// decide chooses the action for every window.
func (r *Rebuild) decide(ctx context.Context, p *Plan, c Choice, live, shadow *side, now int64) error {
	all, fresh, err := r.listed(ctx, live, shadow, now)
	if err != nil {
		return err
	}
	p.listed, p.liveListed, p.boards = len(all.shadow), len(all.live), map[string]bool{}
	for name := range all.live {
		board, _, _ := strings.Cut(name, ":")
		p.boards[board] = true
	}
	var again []string // windows whose action depends on whether their key exists
	for _, name := range all.names {
		w, ok, err := r.actionOf(p, c, name, all.live[name], all.shadow[name], all.there, now)
		switch {
		case err != nil:
			return err
		case ok && !fresh && (w.Action == Kept || w.Action == LeftOut || w.old || all.live[name] == ""):
			again = append(again, name)
		case ok:
			p.Windows = append(p.Windows, w)
		}
	}
	there, err := r.there(ctx, again)
	if err != nil {
		return err
	}
	for _, name := range again {
		w, _, err := r.actionOf(p, c, name, all.live[name], all.shadow[name], there, now)
		if err != nil {
			return err
		}
		p.Windows = append(p.Windows, w)
	}
	slices.SortFunc(p.Windows, func(a, b Planned) int { return a.Compare(b.Window) })
	return nil
}

// actionOf decides on one window. ok is false for a window that is over: the swap does not touch it.
func (r *Rebuild) actionOf(p *Plan, c Choice, name, live, shadow string, there map[string]bool, now int64) (w Planned, ok bool, err error) {
	// The shadow's listing has the bounds and the rule that are configured now. If the live listing has
	// others, workers halt until the window is replaced. If they are equal, the live listing is kept, with
	// its expiry.
	of, err := ranking.ParseListing(name, cmp.Or(shadow, live))
	if err != nil {
		return w, false, err
	}
	w.Window = of.Window
	if live == "" && of.Expires <= now {
		return w, false, nil // the window ended after the shadow began it
	}
	listed, err := ranking.ParseListing(name, live) // an unreadable one is replaced, or apply reports it
	if live != "" {
		if err == nil && listed.Expires <= now {
			return w, false, nil
		}
		w.otherRule = shadow != "" && listed.Rule != of.Rule
		if err == nil && listed.Window == w.Window && !w.otherRule {
			of = listed
		}
	}
	w.Lost, w.stray, w.opens = live != "" && !there[name], live == "" && there[name], live == "" && !there[name]
	rule, configured := r.live.Period(w.Period)
	switch {
	case len(c.Boards) > 0 && !slices.Contains(c.Boards, w.Board):
		w.Action, w.Why = Kept, "its board isn't to be rebuilt"
	case listed.Final > 0 && !w.Lost:
		w.Action, w.Why, w.final = Kept, "it is final: consumer reopen takes that back", true
	case !configured:
		w.Action, w.Why = Kept, fmt.Sprintf("no period %q is configured", w.Period)
	case live != "" && w.End+rule.Retention.Milliseconds() <= now:
		// The window lives by its listing, but is over by today's retention, which determined where the log
		// was read from.
		w.old, w.over = true, true
		w.Action, w.Why = Kept, "periods."+w.Period+".retention was longer when it began"
		if c.AcceptIncomplete && w.Lost {
			w.Action, w.Why, w.Incomplete = Replaced, "", shadow != "" && w.Start < p.From
		}
	case w.Start < p.From:
		w.old = true
		w.Action, w.Why = Kept, "it starts before "+time.UnixMilli(p.From).UTC().Format(time.RFC3339)+", from when on the log was read"
		// A part of a lost window is better than nothing, if the operator accepts that it is shown as
		// incomplete.
		if c.AcceptIncomplete && (w.Lost || live == "") {
			w.Action, w.Why, w.Incomplete = Replaced, "", true
		}
	}
	if w.Action == Kept && live == "" {
		w.Action = LeftOut
	}
	if w.Action == Replaced {
		of.Final = 0 // a final window gets here only if it is lost
		w.listing = of.Text()
		if shadow == "" {
			w.Action, w.listing = Dropped, ""
		}
	}
	w.Incomplete = w.Incomplete || w.Action == Kept && (w.old && (w.Lost || p.Orphaned || len(p.Torn) > 0))
	return w, true, nil
}

// limit leaves out windows that the swap would open in excess of most, by the rule of apply.lua: it admits
// windows in order of their start, and reserves the last tenth for boards that already have a window,
// unless no board has one. It never leaves out a listed window, however many there are, nor a window that
// has a key: partitions halt as long as such a key is not listed.
func (p *Plan) limit(most, listed int) {
	room := most - listed
	read := p.apart() == nil // the shadow is level with the live boards, so Dropped is certain
	var opened []*Planned
	for i := range p.Windows {
		switch w := &p.Windows[i]; {
		case w.Action == Dropped && read:
			room++
		case w.Action == Replaced && w.stray:
			room--
		case w.Action == Replaced && w.opens:
			opened = append(opened, w)
		}
	}
	slices.SortStableFunc(opened, func(a, b *Planned) int { return cmp.Compare(a.Start, b.Start) })
	for _, w := range opened {
		reserved := most / 10
		if p.boards[w.Board] || len(p.boards) == 0 {
			reserved = 0
		}
		if room > reserved {
			room--
			continue
		}
		w.Action, w.listing, w.Incomplete = LeftOut, "", false
		w.Why = fmt.Sprintf("it isn't there, and would be beyond max_windows, %d", most)
		if room > 0 {
			w.Why = fmt.Sprintf("its board has no window, and the last tenth of max_windows, %d, is for boards that have one", most)
		}
	}
}

// there reports, by listing name, which windows have a key, and which listed windows have all the keys that
// they must have.
func (r *Rebuild) there(ctx context.Context, all []string) (map[string]bool, error) {
	there := make(map[string]bool, len(all))
	for names := range slices.Chunk(all, 1000) {
		keys, args := []string{r.live.Keys().Windows()}, make([]any, len(names))
		for i, name := range names {
			shown, hidden := r.live.Keys().Both(name)
			keys, args[i] = append(keys, shown, hidden), name
		}
		reply, err := r.live.Call(ctx, lua.There, keys, args...)
		if err != nil {
			return nil, err
		}
		if len(reply) != len(names) {
			return nil, ranking.Unexpected(lua.There, reply)
		}
		for i, name := range names {
			there[name] = reply[i] == "whole" || reply[i] == "stray"
		}
	}
	return there, nil
}

func origins(fields map[string]string) (map[string]ledger.Origin, error) {
	all := map[string]ledger.Origin{}
	for field, text := range fields {
		o, err := ledger.ParseOrigin(text)
		if err != nil {
			return nil, ranking.Faultf("the origin of %s: %v", field, err)
		}
		all[field] = o
	}
	return all, nil
}

func wholeNumber(v any) (int64, error) {
	text, ok := v.(string)
	n, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil {
		return 0, ranking.Faultf("an unexpected reply: %v for a number", v)
	}
	return n, nil
}
