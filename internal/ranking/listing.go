package ranking

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/retry"
)

// listedAtOnce is how many windows of the listing a call reads; it takes about a millisecond of Redis's
// time.
const listedAtOnce = 500

// listings yields the listing page by page: name, listing, name, listing, …. It waits for pause between two
// pages, and ends after the first error. A name may come twice. The cursors are valid on one server process
// only: call it in onOneServer.
func (s *Store) listings(ctx context.Context, pause time.Duration) iter.Seq2[[]string, error] {
	return s.pages(ctx, s.keys.Windows(), pause)
}

// pages yields a hash page by page. Redis treats a scan's COUNT as a hint: it returns a small hash
// (hash-max-listpack-entries) as a whole, so pages cuts the answer.
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

// Listings reads the entries of the listing by name. It doesn't read them as of one moment.
func (s *Store) Listings(ctx context.Context) (map[string]string, error) { return s.ListingsBy(ctx, 0) }

// ListingsBy is Listings with a pause between two pages, so that it barely delays Redis's other calls.
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

// Listing is an entry of the listing, which lua/listing.lua describes.
type Listing struct {
	ledger.Window
	Expires int64  // the window is readable until then, Unix ms
	Final   int64  // the revision of a final window, from 1; 0 if the window accepts events
	Rule    string // the rule that its scores were written by; empty for the default rule
	Sets    string // which of its two keys must exist; empty for the sorted set alone
}

// listingText is an entry's JSON, with sorted keys.
type listingText struct {
	End     int64  `json:"end"`
	Expires int64  `json:"expires"`
	Final   int64  `json:"final,omitempty"`
	Rule    string `json:"rule,omitempty"`
	Sets    string `json:"sets,omitempty"`
	Start   int64  `json:"start"`
}

// Text returns the entry as it is stored in Redis.
func (l *Listing) Text() string {
	text, err := json.Marshal(listingText{l.End, l.Expires, l.Final, l.Rule, l.Sets, l.Start})
	if err != nil {
		panic(err) // texts and integers only
	}
	return string(text)
}

// ParseListing parses an entry of the listing.
func ParseListing(name, text string) (Listing, error) {
	parts := strings.SplitN(name, ":", 3)
	if len(parts) != 3 {
		return Listing{}, Faultf("a listing has %q, which is no window", clip(name))
	}
	const missing = math.MinInt64
	found := listingText{Start: missing, End: missing, Expires: missing}
	err := json.Unmarshal([]byte(text), &found)
	l := Listing{
		Window:  ledger.Window{Board: parts[0], Period: parts[1], Name: parts[2], Start: found.Start, End: found.End},
		Expires: found.Expires, Final: found.Final, Rule: found.Rule, Sets: found.Sets,
	}
	if err != nil || min(l.Start, l.End, l.Expires) == missing || l.Final < 0 {
		return Listing{Window: ledger.Window{Board: parts[0], Period: parts[1], Name: parts[2]}}, Faultf("%q is no listing of %s", clip(text), name)
	}
	return l, nil
}

// Present tells which of a window's two sets exist.
type Present struct{ Shown, Hidden bool }

// Whole reports whether the sets that the window must have exist.
func (l *Listing) Whole(is Present) bool {
	switch l.Sets {
	case "":
		return is.Shown
	case "both":
		return is.Shown && is.Hidden
	case "hidden":
		return is.Hidden
	case "moving":
		return is.Shown || is.Hidden
	case "none":
		return !is.Shown && !is.Hidden
	}
	return false
}

// With returns the entry of a window with these sets.
func (l *Listing) With(is Present) Listing {
	w := *l
	switch {
	case is.Hidden && is.Shown:
		w.Sets = "both"
	case is.Hidden:
		w.Sets = "hidden"
	case !is.Shown && l.Final > 0:
		w.Sets = "none"
	default:
		w.Sets = ""
	}
	return w
}
