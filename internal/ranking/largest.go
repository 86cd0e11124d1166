package ranking

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Largest is, for each period, the largest points that a standing has, or the largest
// negative ones if they are further from 0: over all boards by the default rule, in the windows that still
// take events. It is how near a layout's range is.
//
// lateness is how long after its end a window of a period takes events. It costs Redis two short commands a window. Boards may be many: between two pages of
// the listing it waits for pause, so that Redis hardly notices.
func (s *Store) Largest(ctx context.Context, lateness func(period string) time.Duration, pause time.Duration) (map[string]int64, error) {
	all := map[string]int64{}
	for name := range s.periods {
		all[name] = 0
	}
	for page, err := range s.listings(ctx, pause) {
		if err == nil {
			err = s.largest(ctx, page, lateness, all)
		}
		if err != nil {
			return nil, fmt.Errorf("look for the largest points under %q: %w", s.prefix, err)
		}
	}
	return all, nil
}

// largest looks at the windows of a page of the listing: name, listing, ….
func (s *Store) largest(ctx context.Context, page []string, lateness func(string) time.Duration, all map[string]int64) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	// Both ends of every window, and the schema that the scores were written with.
	var periods []string
	var ends []*redis.ZSliceCmd
	pipe := s.client.Pipeline()
	schema := pipe.Get(ctx, s.keys.Schema())
	for i := 0; i+1 < len(page); i += 2 {
		l, open := s.takes(page[i], page[i+1], lateness)
		if !open || l.Rule != "" { // of a board by another rule: it has no points
			continue
		}
		key := s.keys.Listed(page[i])
		periods = append(periods, l.Period)
		ends = append(ends, pipe.ZRevRangeWithScores(ctx, key, 0, 0), pipe.ZRevRangeWithScores(ctx, key, -1, -1))
	}
	if len(periods) == 0 {
		return nil
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return s.ofShard(err)
	}
	if err := s.CheckSchema(schema.Val()); err != nil {
		return err
	}
	for i, end := range ends {
		period := periods[i/2]
		layout := s.periods[period].Layout
		for _, z := range end.Val() {
			points, _, err := layout.Decode(z.Score)
			if err != nil {
				return fmt.Errorf("a score of %s: %w", period, err)
			}
			all[period] = max(all[period], points, -points)
		}
	}
	return nil
}

// takes reads an entry of the listing, and reports whether its window still takes events.
func (s *Store) takes(name, listing string, lateness func(string) time.Duration) (l Listing, open bool) {
	l, err := ParseListing(name, listing) // whoever applies to it says what is wrong
	_, known := s.periods[l.Period]
	return l, known && err == nil && time.Now().Before(time.UnixMilli(l.End).Add(lateness(l.Period)))
}
