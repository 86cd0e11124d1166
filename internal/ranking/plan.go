package ranking

// What a rebuild is to replace, and what it has to keep: the log doesn't reach back to the
// beginning of every window.

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/internal/ledger"
)

// Choice is what a rebuild was asked for.
type Choice struct {
	Boards []string // to be replaced; none is all
	// AcceptIncomplete goes on where a window that is kept, or replaced in part, lacks
	// events. It is then shown as incomplete.
	AcceptIncomplete bool
}

// Fate is what becomes of a window.
type Fate int

const (
	// Replaced by what the log says.
	Replaced Fate = iota
	// Dropped: the log says that nobody is in it.
	Dropped
	// Kept as it is.
	Kept
	// LeftOut: it isn't there now, and won't be.
	LeftOut
)

var fates = [...]string{"replaced", "dropped", "kept", "left out"}

func (f Fate) String() string { return fates[f] }

// Planned is what becomes of a window, and why.
type Planned struct {
	Board, Period, Name string
	Start, End          int64 // Unix ms
	Fate                Fate
	Why                 string // it isn't replaced; empty where it is
	Lost                bool   // it is listed, and its key is gone
	// Incomplete: it lacks events from now on that the log doesn't hold, or may.
	Incomplete bool

	listing string // to be written; empty where nothing is
	old     bool   // kept for the log alone: what is accepted as incomplete
	over    bool   // it lives by its listing, and not by today's retention
	stray   bool   // its key is there, and not listed
	opens   bool   // neither is it listed, nor has it a key
}

// Listing is the name under which the window is listed: global:weekly:2026-W47.
func (p *Planned) Listing() string { return p.Board + ":" + p.Period + ":" + p.Name }

// Plan is what a rebuild is about to do, as of one moment.
type Plan struct {
	Windows []Planned // by board, period and start
	// From is the time from which the log was read in every partition, Unix ms: windows
	// that start earlier are kept.
	From int64
	// Torn are the partitions of which a piece was written in part.
	Torn []string
	// Orphaned: the live ledger is empty.
	Orphaned bool
	// Refused is why this may not be done; empty if it may.
	Refused []string

	Live   map[string]string // the live ledger
	Shadow map[string]string // the shadow's

	origins map[string]string // to be written
	listed  int               // windows that the shadow lists
}

// Plan says what Swap would do if both ledgers stood where the live one does now. Until
// the log is read that far, windows that only the log knows aren't in it yet, and none is
// Dropped.
func (r *Rebuild) Plan(ctx context.Context, c Choice) (*Plan, error) {
	p, err := r.plan(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("plan the rebuild of %q: %w", r.live.prefix, err)
	}
	if p.apart() == nil {
		return p, nil
	}
	for i := range p.Windows {
		if p.Windows[i].Fate == Dropped {
			p.Windows[i].Fate = Replaced
		}
	}
	return p, nil
}

func (r *Rebuild) plan(ctx context.Context, c Choice) (*Plan, error) {
	live, shadow, now, err := r.bothAt(ctx)
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
		k := r.live.keys
		return nil, faultf("there is a ledger, %s, and no %s: nothing says what the scores beside it were written with. "+
			"Restore a backup of Redis, or delete %[1]s: the offsets of the consumers' group stand for it then", k.ledger(), k.schema())
	}
	if live.schema != r.live.schema && live.schema != "" {
		return nil, &SchemaError{Prefix: r.live.prefix, Wanted: r.live.schema, Found: live.schema}
	}
	p := &Plan{Live: live.ledger, Shadow: shadow.ledger, Orphaned: len(live.ledger) == 0, listed: len(shadow.windows)}
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
			return nil, faultf("the shadow has no origin of %s", field)
		}
	}
	for _, o := range since {
		p.From = max(p.From, o.Time)
	}
	names := maps.Clone(live.windows)
	maps.Copy(names, shadow.windows)
	there, err := r.there(ctx, names)
	if err != nil {
		return nil, err
	}
	for name := range names {
		w, ok, err := r.fate(p, c, name, live.windows[name], shadow.windows[name], there, now)
		if err != nil {
			return nil, err
		}
		if ok {
			p.Windows = append(p.Windows, w)
		}
	}
	slices.SortFunc(p.Windows, comparePlanned)
	p.limit(r.live.maxWindows, len(live.windows))
	was, err := origins(live.origins)
	if err != nil {
		return nil, err
	}
	p.origins = p.settle(c, was, since)
	p.refuse(c)
	return p, nil
}

// fate decides on one window; ok is false for one that is over, which nothing touches.
func (r *Rebuild) fate(p *Plan, c Choice, name, live, shadow string, there map[string]bool, now int64) (w Planned, ok bool, err error) {
	parts := strings.SplitN(name, ":", 3)
	if len(parts) != 3 {
		return w, false, faultf("the listing has %q, which is no window", name)
	}
	w = Planned{Board: parts[0], Period: parts[1], Name: parts[2]}
	// The shadow's bounds are today's. Where the live ones are others, workers halt: this
	// is how they are healed. Where they are the same, so is the window, and it lives as
	// long as it was told at first.
	of := shadow
	if of == "" {
		of = live
	}
	var expires int64
	if w.Start, w.End, expires, err = bounds(of); err != nil {
		return w, false, fmt.Errorf("the listing of %s: %w", name, err)
	}
	if live == "" && expires <= now {
		return w, false, nil // since the shadow began it
	}
	if live != "" {
		start, end, until, err := bounds(live)
		if err == nil && until <= now {
			return w, false, nil
		}
		if err == nil && start == w.Start && end == w.End {
			of = live
		}
	}
	w.Lost, w.stray, w.opens = live != "" && !there[name], live == "" && there[name], live == "" && !there[name]
	rule, configured := r.live.periods[w.Period]
	switch {
	case len(c.Boards) > 0 && !slices.Contains(c.Boards, w.Board):
		w.Fate, w.Why = Kept, "its board isn't to be rebuilt"
	case !configured:
		w.Fate, w.Why = Kept, fmt.Sprintf("no period %q is configured", w.Period)
	case live != "" && w.End+rule.Retention.Milliseconds() <= now:
		// By its listing it lives, by today's retention not: the log was read by that.
		w.old, w.over = true, true
		w.Fate, w.Why = Kept, "periods."+w.Period+".retention was longer when it began"
		if c.AcceptIncomplete && w.Lost {
			w.Fate, w.Why, w.Incomplete = Replaced, "", shadow != "" && w.Start < p.From
		}
	case w.Start < p.From:
		w.old = true
		w.Fate, w.Why = Kept, "it starts before "+time.UnixMilli(p.From).UTC().Format(time.RFC3339)+", from when on the log was read"
		// Of what is gone, a part is better than nothing, if that is said.
		if c.AcceptIncomplete && (w.Lost || live == "") {
			w.Fate, w.Why, w.Incomplete = Replaced, "", true
		}
	}
	if w.Fate == Kept && live == "" {
		w.Fate = LeftOut
	}
	if w.Fate == Replaced {
		w.listing = of
		if shadow == "" {
			w.Fate, w.listing = Dropped, ""
		}
	}
	w.Incomplete = w.Incomplete || w.Fate == Kept && (w.old && (w.Lost || p.Orphaned || len(p.Torn) > 0))
	return w, true, nil
}

// limit leaves out the windows that a swap would open beyond the most that may be listed:
// as consumers do, those that begin last. What is listed is never left out, however many
// there are, nor is what has a key: as long as that isn't listed, partitions halt.
func (p *Plan) limit(most, listed int) {
	room := most - listed
	read := p.apart() == nil // to where the live boards are: Dropped is so
	var opened []*Planned
	for i := range p.Windows {
		switch w := &p.Windows[i]; {
		case w.Fate == Dropped && read:
			room++
		case w.Fate == Replaced && w.stray:
			room--
		case w.Fate == Replaced && w.opens:
			opened = append(opened, w)
		}
	}
	slices.SortStableFunc(opened, func(a, b *Planned) int { return cmp.Compare(a.Start, b.Start) })
	for _, w := range opened[min(max(room, 0), len(opened)):] {
		w.Fate, w.listing, w.Incomplete = LeftOut, "", false
		w.Why = fmt.Sprintf("it isn't there, and would be beyond max_windows, %d", most)
	}
}

// there says which of the windows listed have a key.
func (r *Rebuild) there(ctx context.Context, listed map[string]string) (map[string]bool, error) {
	there := map[string]bool{}
	for names := range slices.Chunk(slices.Sorted(maps.Keys(listed)), 1000) {
		args := []any{nil, nil, nil}
		for _, name := range names {
			args = append(args, r.live.keys.listed(name))
		}
		reply, err := r.live.run(ctx, thereScript, len(names), args)
		if err != nil {
			return nil, err
		}
		if len(reply) != len(names) {
			return nil, faultf("an unexpected reply of %d elements", len(reply))
		}
		for i, name := range names {
			there[name] = reply[i] == int64(1)
		}
	}
	return there, nil
}

// bounds reads a listing: start, end and expiry, Unix ms.
func bounds(listing string) (start, end, expires int64, err error) {
	words := strings.Fields(listing)
	if len(words) != 3 {
		return 0, 0, 0, faultf("%q is no listing", clip(listing))
	}
	for i, into := range []*int64{&start, &end, &expires} {
		if *into, err = strconv.ParseInt(words[i], 10, 64); err != nil {
			return 0, 0, 0, faultf("%q is no listing", clip(listing))
		}
	}
	return start, end, expires, nil
}

func origins(fields map[string]string) (map[string]ledger.Origin, error) {
	all := map[string]ledger.Origin{}
	for field, text := range fields {
		o, err := ledger.ParseOrigin(text)
		if err != nil {
			return nil, faultf("the origin of %s: %v", field, err)
		}
		all[field] = o
	}
	return all, nil
}

func wholeNumber(v any) (int64, error) {
	text, ok := v.(string)
	n, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil {
		return 0, faultf("an unexpected reply: %v for a number", v)
	}
	return n, nil
}
