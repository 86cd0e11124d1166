package reshard

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sync/errgroup"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/lua"
)

const (
	// copyLives is how long the keys of a copy live that never becomes what is read.
	copyLives = 24 * time.Hour
	// pagesAtOnce is how many pages of a shard are on their way, and most how many in all.
	pagesAtOnce, most = 3, 24
)

// pageSize is what a call reads.
type pageSize struct {
	rows    int64
	windows int
}

// pageSize is a few milliseconds of Redis's time.
func (j *Job) pageSize() pageSize {
	if j.page == (pageSize{}) {
		return pageSize{rows: 2000, windows: 200}
	}
	return j.page
}

// listing is a window as it is listed, the same for all shards of the copy.
type listing struct {
	// Final is 0 where a shard's takes events still or is of another revision. opened: then some have it final.
	ranking.Listing
	opened bool
	over   bool // its retention is: its key may be gone
	shards int  // how many list it
}

// span is a range of the rows of a window, or of its hidden set.
type span struct {
	window      string
	hidden      bool
	first, last int64
}

// set is which of the window's two sets it is of.
func (p span) set() string {
	if p.hidden {
		return p.window + ranking.HiddenSuffix
	}
	return p.window
}

// copier copies what is held.
type copier struct {
	*run
	states   []ledger.State // of the old shards
	listings map[string]listing
	pages    [][][]span          // by old shard
	banned   []map[string]string // likewise

	copied atomic.Int64
	mu     sync.Mutex
	sums   map[string]sum               // by window, of what was read
	sets   []map[string]ranking.Present // by new shard and window: those that have rows there
}

// newCopier reads what is listed.
func newCopier(ctx context.Context, r *run, states []ledger.State) (*copier, error) {
	c := &copier{run: r, states: states, listings: map[string]listing{}, sums: map[string]sum{}}
	for range r.to {
		c.sets = append(c.sets, map[string]ranking.Present{})
	}
	var err error
	if c.banned, err = bannedOn(ctx, r.from); err != nil {
		return nil, err
	}
	for i, s := range r.from {
		var names map[string]string
		err := tries(ctx, func() (err error) { names, err = s.Listings(ctx); return err })
		if err != nil {
			return nil, err
		}
		var listed []ranking.Listing
		for _, name := range slices.Sorted(maps.Keys(names)) {
			l, err := c.list(name, names[name], states[i].Now)
			if err != nil {
				return nil, err
			}
			listed = append(listed, l)
		}
		pages, err := c.cut(ctx, i, s, listed)
		if err != nil {
			return nil, err
		}
		c.pages = append(c.pages, pages)
	}
	c.seal()
	r.result.Windows = len(c.listings)
	return c, nil
}

// list notes what a shard lists, and returns it. Shards may differ in how long a window can be read: the longest
// counts, since nothing of it may go before.
func (c *copier) list(name, text string, now time.Time) (own ranking.Listing, err error) {
	if own, err = ranking.ParseListing(name, text); err != nil {
		return own, err
	}
	l, was := own, c.listings[name]
	if was.shards > 0 {
		if l.Rule != was.Rule {
			return own, ranking.Faultf("%s is listed with another rule on one shard than on another: consumer rebuild settles it", name)
		}
		if l.Window != was.Window {
			return own, ranking.Faultf("%s is listed with other bounds on one shard than on another: consumer rebuild settles it", name)
		}
		l.Expires = max(l.Expires, was.Expires)
	}
	opened := was.opened || was.shards > 0 && was.Final != l.Final
	if opened {
		l.Final = 0
	}
	l.Sets = "" // by the rows that are copied
	c.listings[name] = listing{Listing: l, opened: opened, over: l.Expires <= now.UnixMilli(), shards: was.shards + 1}
	return own, nil
}

// seal has those be final in the copy that are so on every shard, of one revision. Where a call that
// seals is on its way, some are on a part of the shards: the copy is sealed once more.
func (c *copier) seal() {
	for name, l := range c.listings {
		if l.shards < len(c.from) {
			l.opened = l.opened || l.Final > 0
			l.Final = 0
		}
		c.listings[name] = l
	}
}

// cut cuts the windows of a shard, and their hidden sets, into pages.
func (c *copier) cut(ctx context.Context, shard int, s *ranking.Store, listed []ranking.Listing) (pages [][]span, err error) {
	windows := make([]ledger.Window, len(listed))
	for i := range listed {
		windows[i] = listed[i].Window
	}
	var shown, hidden []int64
	if err := tries(ctx, func() (err error) { shown, err = s.MembersOf(ctx, windows); return err }); err != nil {
		return nil, err
	}
	if err := tries(ctx, func() (err error) { hidden, err = s.HiddenOf(ctx, windows); return err }); err != nil {
		return nil, err
	}
	var page []span
	rows, size := int64(0), c.pageSize()
	add := func(of span, count int64) {
		for of.first < count {
			of.last = min(count, of.first+size.rows-rows) - 1
			page = append(page, of)
			rows += of.last + 1 - of.first
			of.first = of.last + 1
			if rows == size.rows || len(page) == size.windows {
				pages, page, rows = append(pages, page), nil, 0
			}
		}
	}
	for i := range listed {
		name := listed[i].Listing()
		is := ranking.Present{Shown: shown[i] > 0, Hidden: hidden[i] > 0}
		if !listed[i].Whole(is) && !c.listings[name].over {
			return nil, ranking.Faultf("%s is listed on shard %d, and a key of it is gone: consumer rebuild settles it", name, shard)
		}
		add(span{window: name}, shown[i])
		add(span{window: name, hidden: true}, hidden[i])
	}
	if len(page) > 0 {
		pages = append(pages, page)
	}
	return pages, nil
}

// copy copies all pages.
func (c *copier) copy(ctx context.Context) error {
	err := c.eachPage(ctx, c.from, c.pages, func(ctx context.Context, from *ranking.Store, page []span) error {
		rows, err := c.read(ctx, from, from.Keys().Hold(), page)
		if err != nil {
			return err
		}
		if err := c.paste(ctx, page, rows); err != nil {
			return err
		}
		n := c.add(c.sums, page, rows)
		c.Watch.Copied(c.copied.Add(n))
		return nil
	})
	c.result.Standings = c.copied.Load()
	return err
}

// eachPage does something with every page, some at once.
func (c *copier) eachPage(ctx context.Context, stores []*ranking.Store, pages [][][]span, do func(context.Context, *ranking.Store, []span) error) error {
	group, going := errgroup.WithContext(ctx)
	group.SetLimit(min(most, pagesAtOnce*len(stores)))
	for n := 0; ; n++ {
		left := false
		for i, all := range pages { // of every shard in turn
			if n < len(all) && going.Err() == nil {
				left = true
				group.Go(func() error { return do(going, stores[i], all[n]) })
			}
		}
		if !left {
			break
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// row is a member's score, as Redis writes it.
type row struct {
	member, score string
	bits          uint64 // of the score
	hash          uint64 // of the member
}

// read reads a page while a lock is ours.
func (c *copier) read(ctx context.Context, s *ranking.Store, lock string, page []span) ([][]row, error) {
	keys, args := []string{lock}, []any{c.lease.text, "ranks"}
	for _, p := range page {
		keys, args = append(keys, s.Keys().Listed(p.set())), append(args, p.first, p.last)
	}
	var reply []any
	err := tries(ctx, func() (err error) { reply, err = s.Call(ctx, lua.Page, keys, args...); return err })
	switch {
	case err != nil:
		return nil, fmt.Errorf("read a page: %w", err)
	case len(reply) == 1 && reply[0] == "lost":
		return nil, fmt.Errorf("%w (%s)", ErrHeld, lock)
	case len(reply) != len(page)+1 || reply[0] != "rows":
		return nil, ranking.Unexpected(lua.Page, reply)
	}
	all := make([][]row, len(page))
	for i, p := range page {
		words, ok := reply[i+1].([]any)
		if !ok || int64(len(words)) != 2*(p.last-p.first+1) {
			return nil, ranking.Faultf("%s has other rows than were counted", p.set())
		}
		rows := make([]row, 0, len(words)/2)
		for j := 0; j < len(words); j += 2 {
			member, _ := words[j].(string)
			score, _ := words[j+1].(string)
			if member == "" {
				continue // nobody, who keeps a shard's window listed; the copy lists it by its members
			}
			value, err := strconv.ParseFloat(score, 64)
			if err != nil {
				return nil, fmt.Errorf("score of %q in %s: %w", member, p.set(), err)
			}
			rows = append(rows, row{member, score, math.Float64bits(value), xxhash.Sum64String(member)})
		}
		all[i] = rows
	}
	return all, nil
}

// paste adds rows to the copy: to each shard its own, and what lists their windows there, in one
// call.
func (c *copier) paste(ctx context.Context, page []span, rows [][]row) error {
	type part struct {
		keys   []string
		args   []any
		listed []any
	}
	parts := make([]part, len(c.to))
	cut := make([][]any, len(c.to))
	for i, p := range page {
		for shard := range cut {
			cut[shard] = cut[shard][:0]
		}
		for _, r := range rows[i] {
			shard := c.To.Of(r.hash)
			cut[shard] = append(cut[shard], r.score, r.member)
		}
		for shard, values := range cut {
			if len(values) == 0 {
				continue
			}
			to := &parts[shard]
			to.keys = append(to.keys, c.to[shard].Keys().Listed(p.set()))
			to.args = append(append(to.args, "set", len(values)), values...)
			to.listed = append(to.listed, p.window, c.text(p.window, ranking.Present{Shown: true}))
			c.has(shard, p)
		}
	}
	var calls []ranking.ScriptCall
	for shard, p := range parts {
		if len(p.keys) == 0 {
			continue
		}
		k := c.to[shard].Keys()
		args := append([]any{c.lease.text, copyLives.Milliseconds(), "hash", len(p.listed)}, p.listed...)
		calls = append(calls, ranking.ScriptCall{
			Store: c.to[shard], Script: lua.Load, Keys: append([]string{k.Copy(), k.Windows()}, p.keys...), Args: append(args, p.args...),
		})
	}
	return c.pasted(ctx, calls)
}

// text is how a window is listed on a shard of the copy where it has these sets.
func (c *copier) text(name string, is ranking.Present) string {
	was := c.listings[name]
	listing := was.With(is)
	return listing.Text()
}

// has notes that a shard of the copy has rows of a set.
func (c *copier) has(shard int, of span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	is := c.sets[shard][of.window]
	is.Shown, is.Hidden = is.Shown || !of.hidden, is.Hidden || of.hidden
	c.sets[shard][of.window] = is
}

// listSets lists which sets each window has on each shard of the copy, once all pages are there:
// they come in no order, and whoever is hidden may be on one shard alone.
func (c *copier) listSets(ctx context.Context) error {
	for shard, windows := range c.sets {
		var listed []any
		for name, l := range c.listings {
			if is := windows[name]; is.Hidden || !is.Shown && l.Final > 0 {
				listed = append(listed, name, c.text(name, is))
			}
		}
		k := c.to[shard].Keys()
		for some := range slices.Chunk(listed, 2*c.pageSize().windows) {
			args := append([]any{c.lease.text, copyLives.Milliseconds(), "hash", len(some)}, some...)
			call := ranking.ScriptCall{Store: c.to[shard], Script: lua.Load, Keys: []string{k.Copy(), k.Windows()}, Args: args}
			if err := c.pasted(ctx, []ranking.ScriptCall{call}); err != nil {
				return err
			}
		}
	}
	return nil
}

// pasted sends calls of load.lua. To send one again changes nothing.
func (c *copier) pasted(ctx context.Context, calls []ranking.ScriptCall) error {
	if len(calls) == 0 {
		return nil
	}
	err := tries(ctx, func() error {
		replies, errs := ranking.CallEach(ctx, calls)
		for i, err := range errs {
			switch {
			case err != nil:
				return err
			case len(replies[i]) == 1 && replies[i][0] == "loaded":
			case len(replies[i]) == 1 && replies[i][0] == "lost":
				return fmt.Errorf("%w (%s)", ErrHeld, calls[i].Keys[0])
			default:
				return ranking.Unexpected(lua.Load, replies[i])
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write a page: %w", full(err))
	}
	return nil
}
