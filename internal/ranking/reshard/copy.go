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
	// copyLives is the expiry of a copy's keys until the switch.
	copyLives = 24 * time.Hour
	// pagesAtOnce is the number of concurrent pages per shard, and most the number over all shards.
	pagesAtOnce, most = 3, 24
)

// pageSize limits what a call reads.
type pageSize struct {
	rows    int64
	windows int
}

// pageSize returns a size that takes Redis a few milliseconds.
func (j *Job) pageSize() pageSize {
	if j.page == (pageSize{}) {
		return pageSize{rows: 2000, windows: 200}
	}
	return j.page
}

// listing is a window's listing, the same for all shards of the copy.
type listing struct {
	// Final is 0 if the window is not final with one revision on every shard. opened means that some shards
	// have it final.
	ranking.Listing
	opened bool
	over   bool // its retention is over: its key may be gone
	shards int  // number of shards that list it
}

// span is a range of the rows of a window or of its hidden set.
type span struct {
	window      string
	hidden      bool
	first, last int64
}

// set returns the name of the set that the span belongs to.
func (p span) set() string {
	if p.hidden {
		return p.window + ranking.HiddenSuffix
	}
	return p.window
}

// copier copies the shards that are held.
type copier struct {
	*run
	states   []ledger.State // of the old shards
	listings map[string]listing
	pages    [][][]span          // by old shard
	banned   []map[string]string // by old shard

	copied atomic.Int64
	mu     sync.Mutex
	sums   map[string]sum               // by window, of the rows read
	sets   []map[string]ranking.Present // by new shard and window: the sets that have rows there
}

// newCopier reads the bans and listings of the old shards.
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

// list records a shard's listing, and returns it. Shards may differ in a window's expiry; the latest
// counts, so that no shard's part expires early.
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
	l.Sets = "" // set later by the copied rows
	c.listings[name] = listing{Listing: l, opened: opened, over: l.Expires <= now.UnixMilli(), shards: was.shards + 1}
	return own, nil
}

// seal makes those windows final in the copy that are final on every shard, with one revision. A call that
// seals may have reached only some of the shards; such windows are sealed again in the copy.
func (c *copier) seal() {
	for name, l := range c.listings {
		if l.shards < len(c.from) {
			l.opened = l.opened || l.Final > 0
			l.Final = 0
		}
		c.listings[name] = l
	}
}

// cut divides the windows of a shard, and their hidden sets, into pages.
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

// eachPage calls do for every page, several pages concurrently.
func (c *copier) eachPage(ctx context.Context, stores []*ranking.Store, pages [][][]span, do func(context.Context, *ranking.Store, []span) error) error {
	group, going := errgroup.WithContext(ctx)
	group.SetLimit(min(most, pagesAtOnce*len(stores)))
	for n := 0; ; n++ {
		left := false
		for i, all := range pages { // from every shard in turn
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

// row is a member and its score, as Redis formats it.
type row struct {
	member, score string
	bits          uint64 // of the score
	hash          uint64 // of the member
}

// read reads a page while this reshard has the given lock.
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
				continue // the placeholder that keeps a window listed here; the copy lists windows by their members
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

// paste adds rows to the copy. One call per shard adds the shard's rows together with the listings of their
// windows.
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

// text returns the listing of a window on a shard of the copy that has these sets.
func (c *copier) text(name string, is ranking.Present) string {
	was := c.listings[name]
	listing := was.With(is)
	return listing.Text()
}

// has records that a shard of the copy has rows of a set.
func (c *copier) has(shard int, of span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	is := c.sets[shard][of.window]
	is.Shown, is.Hidden = is.Shown || !of.hidden, is.Hidden || of.hidden
	c.sets[shard][of.window] = is
}

// listSets updates, after all pages are written, the listings of windows that have a hidden set, or that
// are final without shown members. Pages are written in no order, and all rows of a shard may be hidden.
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

// pasted sends calls of load.lua, which can be repeated without effect.
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
