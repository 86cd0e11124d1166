package ranking

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/ledger"
)

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
