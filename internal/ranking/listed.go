package ranking

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// ListedWindow is a window that Redis lists: events were counted in it, and its retention
// isn't over.
type ListedWindow struct {
	Board, Period, Name string
	Start, End          int64 // Unix ms, [Start, End)
}

// ListedWindows are the windows that Redis lists of the boards that match, in no order. It
// reads the listing page by page, and no window's key.
func (s *Store) ListedWindows(ctx context.Context, match func(board string) bool) ([]ListedWindow, error) {
	now, err := s.Now(ctx)
	if err != nil {
		return nil, err
	}
	var all map[ListedWindow]bool // a scan may return a name twice
	err = s.steady(ctx, func() error {
		all = map[ListedWindow]bool{}
		for page, err := range s.listings(ctx, 0) {
			if err != nil {
				return err
			}
			for i := 0; i+1 < len(page); i += 2 {
				w, until, ok := parseListed(page[i], page[i+1])
				if ok && until > now.UnixMilli() && match(w.Board) {
					all[w] = true
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the listing under %q: %w", s.prefix, asRights(err, "", s.prefix))
	}
	windows := make([]ListedWindow, 0, len(all))
	for w := range all {
		windows = append(windows, w)
	}
	return windows, nil
}

// parseListed reads an entry of the listing, and until when the window can be read, in Unix
// ms. What isn't one is left out: whoever applies to it says what is wrong.
func parseListed(name, listing string) (w ListedWindow, until int64, ok bool) {
	parts, bounds := strings.SplitN(name, ":", 3), strings.Fields(listing)
	if len(parts) != 3 || len(bounds) != 3 {
		return w, 0, false
	}
	var times [3]int64
	for i, text := range bounds {
		var err error
		if times[i], err = strconv.ParseInt(text, 10, 64); err != nil {
			return w, 0, false
		}
	}
	return ListedWindow{parts[0], parts[1], parts[2], times[0], times[1]}, times[2], true
}

// membersAtOnce is how many windows' members are counted a call.
const membersAtOnce = 200

// MembersOf is how many members each of these windows has, in their order; 0 where its key
// is gone. It costs Redis one short command a window.
func (s *Store) MembersOf(ctx context.Context, windows []ListedWindow) ([]int64, error) {
	var all []int64
	for some := range slices.Chunk(windows, membersAtOnce) {
		counts, err := s.membersOf(ctx, some)
		if err != nil {
			return nil, fmt.Errorf("count the members of windows under %q: %w", s.prefix, asRights(err, "", s.prefix))
		}
		all = append(all, counts...)
	}
	return all, nil
}

func (s *Store) membersOf(ctx context.Context, windows []ListedWindow) ([]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	pipe := s.client.Pipeline()
	var cards []*redis.IntCmd
	for _, w := range windows {
		cards = append(cards, pipe.ZCard(ctx, s.keys.listed(w.Board+":"+w.Period+":"+w.Name)))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	counts := make([]int64, len(cards))
	for i, card := range cards {
		counts[i] = card.Val()
	}
	return counts, nil
}
