package ranking

import (
	"context"
	"iter"
	"slices"
	"time"
)

// listedAtOnce is how many windows of the listing are looked at a call: a millisecond of Redis's
// time or so.
const listedAtOnce = 500

// listings goes through the listing page by page: name, listing, name, listing, … Between
// two pages it waits for pause. It ends with the first error.
//
// The scan's cursors are good for one server's process (steady). A name may come twice.
func (s *Store) listings(ctx context.Context, pause time.Duration) iter.Seq2[[]string, error] {
	return s.pages(ctx, s.keys.windows(), pause)
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
					if err := wait(ctx, pause); err != nil {
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
	return s.client.HScan(ctx, key, cursor, "", listedAtOnce).Result()
}
