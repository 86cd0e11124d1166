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

	"github.com/cespare/xxhash/v2"
	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/lua"
)

// listings yields the listing page by page, as Pages does: name, listing, name, listing, ….
func (s *Store) listings(ctx context.Context, pause time.Duration) iter.Seq2[[]string, error] {
	return s.Pages(ctx, s.keys.Windows(), pause)
}

// Listings reads the entries of the listing by name. It doesn't read them as of one moment.
func (s *Store) Listings(ctx context.Context) (map[string]string, error) { return s.ListingsBy(ctx, 0) }

// ListingsBy is Listings with a pause between two pages, so that it barely delays Redis's other calls.
func (s *Store) ListingsBy(ctx context.Context, pause time.Duration) (map[string]string, error) {
	return s.Hash(ctx, s.keys.Windows(), "the windows listed", pause)
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
		return Listing{}, Faultf("a listing has %q, which is no window", Clip(name))
	}
	const missing = math.MinInt64
	found := listingText{Start: missing, End: missing, Expires: missing}
	err := json.Unmarshal([]byte(text), &found)
	l := Listing{
		Window:  ledger.Window{Board: parts[0], Period: parts[1], Name: parts[2], Start: found.Start, End: found.End},
		Expires: found.Expires, Final: found.Final, Rule: found.Rule, Sets: found.Sets,
	}
	if err != nil || min(l.Start, l.End, l.Expires) == missing || l.Final < 0 {
		return Listing{Window: ledger.Window{Board: parts[0], Period: parts[1], Name: parts[2]}}, Faultf("%q is no listing of %s", Clip(text), name)
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

// ListedWindows returns the windows of matching boards that are listed and whose retention isn't over,
// unsorted. It reads no window's key. It leaves out invalid entries; a worker that has events for one
// reports the error.
func (s *Store) ListedWindows(ctx context.Context, match func(board string) bool) ([]ledger.Window, error) {
	now, err := s.Now(ctx)
	if err != nil {
		return nil, err
	}
	all, err := s.Listings(ctx)
	if err != nil {
		return nil, err
	}
	var windows []ledger.Window
	for name, listing := range all {
		if l, err := ParseListing(name, listing); err == nil && l.Expires > now.UnixMilli() && match(l.Board) {
			windows = append(windows, l.Window)
		}
	}
	return windows, nil
}

// membersAtOnce is how many windows a call counts members for.
const membersAtOnce = 200

// MembersOf returns the number of members in each window, in order; 0 if its key is gone. It costs Redis
// one short command per window.
func (s *Store) MembersOf(ctx context.Context, windows []ledger.Window) ([]int64, error) {
	return s.count(ctx, windows, s.keys.Listed)
}

// HiddenOf returns the number of rows in each window's hidden set, like MembersOf. It also counts the row
// of the empty id, which keeps a set without members in existence.
func (s *Store) HiddenOf(ctx context.Context, windows []ledger.Window) ([]int64, error) {
	return s.count(ctx, windows, s.keys.Hidden)
}

func (s *Store) count(ctx context.Context, windows []ledger.Window, key func(name string) string) ([]int64, error) {
	var all []int64
	for some := range slices.Chunk(windows, membersAtOnce) {
		counts, err := s.cards(ctx, some, key)
		if err != nil {
			return nil, fmt.Errorf("count the members of windows under %q: %w", s.prefix, err)
		}
		all = append(all, counts...)
	}
	return all, nil
}

func (s *Store) cards(ctx context.Context, windows []ledger.Window, key func(name string) string) ([]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	pipe := s.client.Pipeline()
	var cards []*redis.IntCmd
	for _, w := range windows {
		cards = append(cards, pipe.ZCard(ctx, key(w.Listing())))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, s.explain(err, "")
	}
	counts := make([]int64, len(cards))
	for i, card := range cards {
		counts[i] = card.Val()
	}
	return counts, nil
}

// Windows returns the number of listed windows.
func (s *Store) Windows(ctx context.Context) (int64, error) {
	return s.size(ctx, s.keys.Windows(), "the windows listed")
}

// Seals returns a number that every seal on this shard changes: seal.lua adds a ledger.
func (s *Store) Seals(ctx context.Context) (int64, error) {
	return s.size(ctx, s.keys.Final(), "the seals")
}

// AddBoards adds the hashes of the names of all boards that have a listed window. It reads the listing page
// by page and waits for pause between two pages, so that it barely delays Redis's other calls. A hash takes
// 8 bytes.
func (s *Store) AddBoards(ctx context.Context, pause time.Duration, boards map[uint64]struct{}) error {
	for page, err := range s.listings(ctx, pause) {
		if err != nil {
			return fmt.Errorf("count the boards under %q: %w", s.prefix, err)
		}
		for i := 0; i < len(page); i += 2 {
			name, _, _ := strings.Cut(page[i], ":")
			boards[xxhash.Sum64String(name)] = struct{}{}
		}
	}
	return nil
}

// Lost returns the names of the listed windows whose keys Redis has lost, sorted and without repeats. A
// worker that has an event for such a window halts. Lost costs Redis two short commands per window.
func (s *Store) Lost(ctx context.Context) ([]string, error) {
	var all []string
	for page, err := range s.listings(ctx, 0) {
		if err == nil {
			err = s.lost(ctx, page, &all)
		}
		if err != nil {
			return nil, fmt.Errorf("look for boards of %q that are lost: %w", s.prefix, err)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil // a scan may give a name twice
}

// lost checks a page of the listing: name, listing, ….
func (s *Store) lost(ctx context.Context, page []string, all *[]string) error {
	keys := []string{s.keys.Windows()}
	var names []any
	for i := 0; i+1 < len(page); i += 2 {
		shown, hidden := s.keys.Both(page[i])
		keys = append(keys, shown, hidden)
		names = append(names, page[i])
	}
	if len(names) == 0 {
		return nil
	}
	reply, err := s.Call(ctx, lua.There, keys, names...)
	if err != nil {
		return err
	}
	for i, word := range reply {
		if word == "lost" {
			*all = append(*all, page[2*i])
		}
	}
	return nil
}

// The boards that have a listed window. Only they may open windows in the last tenth of MaxWindows.

// openedFor is how long the boards are cached. However many new boards events name, a store reads the
// listing at most once in this time.
const openedFor = 10 * time.Second

// openedBoards are the boards that had a window when the listing was last read.
type openedBoards struct {
	turn   chan struct{} // holds a token while a call uses the fields below, also while it reads the listing
	read   time.Time
	boards map[uint64]struct{} // hashes of their names
}

// haveWindows returns a digit for each window: 1 if its board had a listed window when the listing was last
// read, else 0. A board that opened its first window since then counts as new. This is possible only if
// windows were removed within these seconds and others took their places.
func (s *Store) haveWindows(ctx context.Context, windows []ledger.Window) (string, error) {
	o := &s.opened
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-ctx.Done():
		return "", fmt.Errorf("see which boards have a window: %w", context.Cause(ctx))
	}
	if o.boards == nil || time.Since(o.read) >= openedFor {
		boards, began := map[uint64]struct{}{}, time.Now()
		if err := s.OnOneServer(ctx, func() error { return s.AddBoards(ctx, time.Millisecond, boards) }); err != nil {
			return "", fmt.Errorf("see which boards have a window: %w", err)
		}
		o.boards, o.read = boards, began
	}
	have := make([]byte, len(windows))
	for i := range windows {
		have[i] = '0'
		if _, ok := o.boards[xxhash.Sum64String(windows[i].Board)]; ok {
			have[i] = '1'
		}
	}
	return string(have), nil
}
