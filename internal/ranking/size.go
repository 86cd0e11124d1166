package ranking

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
)

// Windows is how many windows are listed.
func (s *Store) Windows(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	n, err := s.client.HLen(ctx, s.keys.windows()).Result()
	if err != nil {
		return 0, fmt.Errorf("count the windows listed under %q: %w", s.prefix, asRights(err, "", s.prefix))
	}
	return n, nil
}

// Boards is how many boards have a window that is listed. It reads the listing page by
// page and waits for pause between two, so that Redis hardly notices; of names it keeps
// their hashes, eight bytes each.
func (s *Store) Boards(ctx context.Context, pause time.Duration) (int, error) {
	boards := map[uint64]struct{}{}
	for page, err := range s.listings(ctx, pause) {
		if err != nil {
			return 0, fmt.Errorf("count the boards under %q: %w", s.prefix, asRights(err, "", s.prefix))
		}
		for i := 0; i < len(page); i += 2 {
			name, _, _ := strings.Cut(page[i], ":")
			boards[xxhash.Sum64String(name)] = struct{}{}
		}
	}
	return len(boards), nil
}
