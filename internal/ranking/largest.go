package ranking

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Largest returns, for each period, the largest absolute value of the points of a standing, over the
// windows that still accept events, of all boards with the default rule. It shows how close standings are
// to a layout's limit.
//
// lateness returns how long after its end a window of a period accepts events. Largest costs Redis two
// short commands per window. As there may be many boards, it waits for pause between two pages of the
// listing, so that it barely delays Redis's other calls.
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

// largest reads the windows of a page of the listing: name, listing, ….
func (s *Store) largest(ctx context.Context, page []string, lateness func(string) time.Duration, all map[string]int64) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	// Read both ends of every window, and the schema that the scores were written with.
	var periods []string
	var ends []*redis.ZSliceCmd
	pipe := s.client.Pipeline()
	schema := pipe.Get(ctx, s.keys.Schema())
	for i := 0; i+1 < len(page); i += 2 {
		l, open := s.takes(page[i], page[i+1], lateness)
		if !open || l.Rule != "" { // a board with another rule has no points
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
		return s.OfShard(err)
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

// takes parses an entry of the listing, and reports whether its window still accepts events.
func (s *Store) takes(name, listing string, lateness func(string) time.Duration) (l Listing, open bool) {
	l, err := ParseListing(name, listing) // apply.lua reports an invalid entry
	_, known := s.periods[l.Period]
	return l, known && err == nil && time.Now().Before(time.UnixMilli(l.End).Add(lateness(l.Period)))
}
