package boards

// Prolonging closed windows in Redis until they are copied to a place, such as the archive.

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/internal/ranking"
)

// Stay makes closed windows readable at least until a time, on every shard, and returns the number of
// prolonged windows, counted once per shard. It leaves a window unchanged if its listing has changed
// meanwhile. It first records, for the place, when the window was to expire; Release restores that.
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
		expires, ok := was[c.Listing()] // another place prolongs it
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

// Release reverts Stay for a place, for the listed windows that is reports as copied. They expire when they
// were to expire originally, but not before least, unless another place still prolongs them. Records of
// windows that are no longer listed are removed.
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

// stayOf is the name of a window's record for a place.
func stayOf(place, listing string) string { return place + " " + listing }

func placeOf(stay string) (place, listing string) {
	place, listing, _ = strings.Cut(stay, " ")
	return place, listing
}

// originals returns the original expiry, Unix ms, of the prolonged windows by listing. If there are several
// records of a window, the earliest counts.
func originals(stays map[string]string) map[string]int64 {
	all := map[string]int64{}
	for name, text := range stays {
		at, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			continue // not written by this version
		}
		_, listing := placeOf(name)
		if before, ok := all[listing]; !ok || at < before {
			all[listing] = at
		}
	}
	return all
}

// until changes the expiry of windows on every shard.
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
