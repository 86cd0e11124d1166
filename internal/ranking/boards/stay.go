package boards

// How long closed windows stay in Redis for a place that they are to be copied to.

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/internal/ranking"
)

// Stay has closed windows be readable until a time at least, on every shard, and returns on how many shards one is
// longer than it was to be. What was listed otherwise meanwhile stays as it is. When a window was to expire is noted
// first, for the place that it stays for: Release takes it back.
func (b *Boards) Stay(ctx context.Context, place string, windows []Closed, until time.Time) (n int64, err error) {
	if len(windows) == 0 {
		return 0, nil
	}
	stays, err := b.shards[0].Stays(ctx)
	if err != nil {
		return 0, err
	}
	was := originals(stays)
	added := map[string]string{}
	for i := range windows {
		c := &windows[i]
		if _, ok := stays[stayOf(place, c.Listing())]; ok {
			continue
		}
		expires, ok := was[c.Listing()] // another place has it stay
		if !ok {
			expires = c.Expires
		}
		added[stayOf(place, c.Listing())] = strconv.FormatInt(expires, 10)
	}
	if len(added) > 0 {
		if err := b.shards[0].AddStays(ctx, added); err != nil {
			return 0, err
		}
	}
	return b.until(ctx, windows, (*ranking.Store).Longer, func(*Closed) time.Time { return until })
}

// Release takes back what Stay did for a place, of the listed windows that are there by now: they expire when they
// were to, but not before a time, unless they stay for another place. Windows that aren't listed any more are forgotten.
func (b *Boards) Release(ctx context.Context, place string, closed []Closed, is func(*Closed) bool, least time.Time) error {
	stays, err := b.shards[0].Stays(ctx)
	if err != nil || len(stays) == 0 {
		return err
	}
	listed := map[string]*Closed{}
	for i := range closed {
		listed[closed[i].Listing()] = &closed[i]
	}
	var names []string
	for name := range stays {
		of, listing := placeOf(name)
		if c := listed[listing]; of == place && (c == nil || is(c)) {
			names = append(names, name)
		}
	}
	was := originals(stays)
	var shorter []Closed
	for _, name := range names {
		_, listing := placeOf(name)
		delete(stays, name)
		if c := listed[listing]; c != nil {
			shorter = append(shorter, *c)
		}
	}
	others := originals(stays)
	shorter = slices.DeleteFunc(shorter, func(c Closed) bool { _, stays := others[c.Listing()]; return stays })
	_, err = b.until(ctx, shorter, (*ranking.Store).Shorter, func(c *Closed) time.Time {
		at := time.UnixMilli(was[c.Listing()])
		if at.Before(least) {
			at = least
		}
		return at
	})
	if err != nil || len(names) == 0 {
		return err
	}
	return b.shards[0].DropStays(ctx, names...)
}

// stayOf is the name of a window's stay for a place.
func stayOf(place, listing string) string { return place + " " + listing }

func placeOf(stay string) (place, listing string) {
	place, listing, _ = strings.Cut(stay, " ")
	return place, listing
}

// originals are when the windows were to expire that stay, by their listings: the first of several times.
func originals(stays map[string]string) map[string]int64 {
	all := map[string]int64{}
	for name, text := range stays {
		at, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			continue // no program of this version has written it
		}
		_, listing := placeOf(name)
		if before, ok := all[listing]; !ok || at < before {
			all[listing] = at
		}
	}
	return all
}

// until changes until when windows are readable.
func (b *Boards) until(ctx context.Context, windows []Closed, do func(*ranking.Store, context.Context, []ranking.Staying) (int64, error), at func(*Closed) time.Time) (n int64, err error) {
	for i, s := range b.shards {
		var all []ranking.Staying
		for j := range windows {
			if c := &windows[j]; c.listings[i] != "" {
				all = append(all, ranking.Staying{Name: c.Listing(), Listing: c.listings[i], Until: at(c)})
			}
		}
		did, err := do(s, ctx, all)
		n += did
		if err != nil {
			return n, err
		}
	}
	return n, nil
}
