package ranking

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/retry"
)

// listedAtOnce is how many windows of the listing are looked at a call: a millisecond of Redis's
// time or so.
const listedAtOnce = 500

// listings goes through the listing page by page: name, listing, name, listing, … Between
// two pages it waits for pause. It ends with the first error.
//
// The scan's cursors are good for one server's process (onOneServer). A name may come twice.
func (s *Store) listings(ctx context.Context, pause time.Duration) iter.Seq2[[]string, error] {
	return s.pages(ctx, s.keys.Windows(), pause)
}

// pages goes through a hash. Redis takes a scan's count for a wish: a hash that it keeps
// in one piece (hash-max-listpack-entries) comes as a whole, whose pages are cut here.
func (s *Store) pages(ctx context.Context, key string, pause time.Duration) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		first := true
		for cursor := uint64(0); ; {
			answer, next, err := s.scanned(ctx, key, cursor)
			if err != nil {
				yield(nil, err)
				return
			}
			for page := range slices.Chunk(answer, 2*listedAtOnce) {
				if !first {
					if err := retry.Sleep(ctx, pause); err != nil {
						yield(nil, err)
						return
					}
				}
				first = false
				if !yield(page, nil) {
					return
				}
			}
			if cursor = next; cursor == 0 {
				return
			}
		}
	}
}

func (s *Store) scanned(ctx context.Context, key string, cursor uint64) ([]string, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	page, next, err := s.client.HScan(ctx, key, cursor, "", listedAtOnce).Result()
	return page, next, s.ofShard(err)
}

// Listings is what is listed: by name, the window's start, end and expiry. It isn't read at
// one moment.
func (s *Store) Listings(ctx context.Context) (map[string]string, error) { return s.ListingsBy(ctx, 0) }

// ListingsBy is Listings with a pause between two pages, so that Redis hardly notices.
func (s *Store) ListingsBy(ctx context.Context, pause time.Duration) (map[string]string, error) {
	all := map[string]string{}
	err := s.onOneServer(ctx, func() error {
		clear(all)
		for page, err := range s.listings(ctx, pause) {
			if err != nil {
				return err
			}
			for i := 0; i+1 < len(page); i += 2 {
				all[page[i]] = page[i+1]
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the windows listed under %q: %w", s.prefix, s.explain(err, ""))
	}
	return all, nil
}

// listingWords are the words of an entry of the listing: start, end, the rule of a board that has
// one of its own, its revision once it is final, which sets the window has where it hasn't its sorted
// set alone, and expires.
type listingWords struct{ start, end, rule, revision, sets, expires string }

func splitListing(listing string) (w listingWords, ok bool) {
	words := strings.Fields(listing)
	if len(words) < 3 || len(words) > 6 {
		return w, false
	}
	w.start, w.end, w.expires = words[0], words[1], words[len(words)-1]
	between := words[2 : len(words)-1]
	if n := len(between); n > 0 && strings.HasPrefix(between[n-1], "+") {
		w.sets, between = between[n-1], between[:n-1]
	}
	if n := len(between); n > 0 && strings.HasPrefix(between[n-1], "=") {
		w.revision, between = between[n-1], between[:n-1]
	}
	if len(between) > 0 {
		w.rule = between[0]
	}
	return w, len(between) < 2
}

// OpenListing is an entry of the listing as it is if the window isn't final.
func OpenListing(listing string) string {
	w, ok := splitListing(listing)
	if !ok || w.revision == "" {
		return listing
	}
	return strings.Replace(listing, " "+w.revision+" ", " ", 1)
}

// ParseListing reads an entry of the listing, and until when the window can be read, in Unix
// ms. ListedRule, ListedRevision and Present read the rest of it.
func ParseListing(name, listing string) (w ledger.Window, expires int64, err error) {
	parts := strings.SplitN(name, ":", 3)
	if len(parts) != 3 {
		return w, 0, Faultf("a listing has %q, which is no window", clip(name))
	}
	w = ledger.Window{Board: parts[0], Period: parts[1], Name: parts[2]}
	words, ok := splitListing(listing)
	if !ok {
		return w, 0, Faultf("%q is no listing of %s", clip(listing), name)
	}
	var errs [3]error
	w.Start, errs[0] = strconv.ParseInt(words.start, 10, 64)
	w.End, errs[1] = strconv.ParseInt(words.end, 10, 64)
	expires, errs[2] = strconv.ParseInt(words.expires, 10, 64)
	if errors.Join(errs[:]...) != nil {
		return w, 0, Faultf("%q is no listing of %s", clip(listing), name)
	}
	return w, expires, nil
}

// ListedRule is the rule that a window's scores were written by, as its listing has it: empty
// for the default rule.
func ListedRule(listing string) string {
	words, _ := splitListing(listing)
	return words.rule
}

// ListedRevision is that of a final window, from 1; 0 where it takes events still.
func ListedRevision(listing string) int64 {
	words, _ := splitListing(listing)
	n, err := strconv.ParseInt(strings.TrimPrefix(words.revision, "="), 10, 64)
	if err != nil || n < 1 {
		return 0
	}
	return n
}

// Present are which of its two sets a window has.
type Present struct{ Shown, Hidden bool }

// Whole reports whether sets that are there are those that a window has to have, by the word of
// its listing that says so (lua/sets.lua).
func (is Present) Whole(listing string) bool {
	words, _ := splitListing(listing)
	switch words.sets {
	case "":
		return is.Shown
	case "+both":
		return is.Shown && is.Hidden
	case "+hidden":
		return is.Hidden
	case "+moving":
		return is.Shown || is.Hidden
	case "+none":
		return !is.Shown && !is.Hidden
	}
	return false
}

// In is a listing that says which sets its window has.
func (is Present) In(listing string) string {
	words, _ := splitListing(listing)
	all := []string{words.start, words.end}
	if words.rule != "" {
		all = append(all, words.rule)
	}
	if words.revision != "" {
		all = append(all, words.revision)
	}
	if is.Hidden && is.Shown {
		all = append(all, "+both")
	} else if is.Hidden {
		all = append(all, "+hidden")
	} else if !is.Shown && words.revision != "" {
		all = append(all, "+none")
	}
	return strings.Join(append(all, words.expires), " ")
}
