package boards

// Windows as an archive copies them.

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

// Closed is a window that accepts no more events, by the clock of every shard.
type Closed struct {
	ledger.Window
	// Revision is the revision, from 1, of a window that is final on every shard; else 0.
	Revision int64
	// SealedAt and Ledger are set for a final window: the time at which the last shard sealed it, and the
	// events that counted, on the shard furthest behind.
	SealedAt time.Time
	Ledger   map[string]string
	// ReopenedWhy is the reason that the previous revision was reopened, or empty.
	ReopenedWhy string
	// Expires is the earliest time at which the window expires on a shard, Unix ms.
	Expires int64

	closed   bool
	listings []string // by shard, empty if the shard does not list it
	final    []int64  // by shard, its revision; 0 if it is not final
}

// Closed returns all listed windows that accept no more events, ordered by end. lateness returns how long
// after its end a window accepts events, and false if its period is not kept. Closed pages through the
// listings and waits for pause between pages.
func (b *Boards) Closed(ctx context.Context, lateness func(ledger.Window) (time.Duration, bool), pause time.Duration) ([]Closed, error) {
	closed, _, err := b.ClosedAndOpen(ctx, lateness, pause)
	return closed, err
}

// ClosedAndOpen returns the closed windows as Closed does, and all other listed windows.
func (b *Boards) ClosedAndOpen(ctx context.Context, lateness func(ledger.Window) (time.Duration, bool), pause time.Duration) (closed []Closed, open []ledger.Window, err error) {
	now, _, err := b.Clocks(ctx)
	if err != nil {
		return nil, nil, err
	}
	byName := map[string]*Closed{}
	err = b.eachListed(ctx, now.UnixMilli(), now.UnixMilli(), lateness, pause, func(shard int, l listedWindow) {
		c := byName[l.name]
		if c == nil {
			c = &Closed{Window: l.Window, Expires: l.Expires, closed: l.closed, listings: make([]string, len(b.shards)), final: make([]int64, len(b.shards))}
			byName[l.name] = c
		}
		c.Expires = min(c.Expires, l.Expires)
		c.listings[shard], c.final[shard] = l.text, l.Final
	})
	if err != nil {
		return nil, nil, err
	}
	var all []*Closed
	for _, c := range byName {
		if !c.closed {
			open = append(open, c.Window)
			continue
		}
		c.Revision = slices.Min(c.final)
		all = append(all, c)
	}
	if err := b.seals(ctx, all); err != nil {
		return nil, nil, err
	}
	for _, c := range all {
		closed = append(closed, *c)
	}
	byEnd := func(x, y ledger.Window) int {
		return cmp.Or(cmp.Compare(x.End, y.End), strings.Compare(x.Listing(), y.Listing()))
	}
	slices.SortFunc(closed, func(x, y Closed) int { return byEnd(x.Window, y.Window) })
	slices.SortFunc(open, byEnd)
	return closed, open, nil
}

// listedWindow is a window as a shard lists it.
type listedWindow struct {
	ranking.Listing
	lateness time.Duration
	closed   bool // it accepts no more events
	name     string
	text     string
}

// eachListed calls found for each window that a shard lists and that has not expired at time redis. A
// window is closed if it accepts no events after time over. Both are Unix ms.
func (b *Boards) eachListed(ctx context.Context, redis, over int64, lateness func(ledger.Window) (time.Duration, bool), pause time.Duration, found func(shard int, l listedWindow)) error {
	for i, s := range b.shards {
		listings, err := s.ListingsBy(ctx, pause)
		if err != nil {
			return err
		}
		for name, text := range listings {
			l, err := ranking.ParseListing(name, text)
			if err != nil {
				continue // apply reports an unreadable listing
			}
			if late, ok := lateness(l.Window); ok && l.Expires > redis {
				found(i, listedWindow{l, late, l.End+late.Milliseconds() < over, name, text})
			}
		}
	}
	return nil
}

// OnSameServers runs do while every shard is read from the same server and its process does not restart, so
// that Redis is not rolled back meanwhile. It returns ranking.ErrServerChanged if a server changed.
func (b *Boards) OnSameServers(ctx context.Context, do func() error) error {
	begun := false
	run := func() error {
		if begun {
			return ranking.ErrServerChanged
		}
		begun = true
		return do()
	}
	for _, s := range b.shards {
		inner := run
		run = func() error { return s.OnOneServer(ctx, inner) }
	}
	return run()
}

// seals fills in when final windows were sealed, and with which ledger. If a shard lacks a window's seal
// record, the window is not treated as final.
func (b *Boards) seals(ctx context.Context, all []*Closed) error {
	var names []string
	final := map[string]*Closed{}
	for _, c := range all {
		if c.Revision > 0 {
			names = append(names, c.Listing())
			final[c.Listing()] = c
		}
	}
	states := map[string][]ledger.State{}
	for _, s := range b.shards {
		records, err := s.SealRecords(ctx, names)
		if err != nil {
			return err
		}
		var at []time.Time
		for _, r := range records {
			at = append(at, r.At)
		}
		slices.SortFunc(at, time.Time.Compare)
		ledgers, err := s.SealLedgers(ctx, slices.CompactFunc(at, time.Time.Equal))
		if err != nil {
			return err
		}
		for name, r := range records {
			c := final[name]
			if counted, ok := ledgers[r.At]; ok && r.Revision == c.Revision && r.Reopened.IsZero() {
				states[name] = append(states[name], ledger.State{Ledger: counted})
				c.ReopenedWhy = cmp.Or(c.ReopenedWhy, r.Why)
				if r.At.After(c.SealedAt) {
					c.SealedAt = r.At
				}
			}
		}
	}
	for name, c := range final {
		if len(states[name]) < len(b.shards) {
			c.Revision, c.SealedAt = 0, time.Time{}
			continue
		}
		c.Ledger = ledger.Together(states[name]).Ledger
	}
	return nil
}
