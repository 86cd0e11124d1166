package ranking

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/standings/standings/internal/ranking/lua"
)

// KeyOutlives is how long a window's key outlives its retention.
const KeyOutlives = 24 * time.Hour

// RetireAfter is how long after a window's expiry its listing is dropped. Its key
// goes a day earlier.
const RetireAfter = 48 * time.Hour

// Retire drops the listings of windows that have been over for two days, and
// returns how many; the names of members who were in no other window go with them. Redis's own time decides, and a listing that changed since it
// was read stays. It is called now and then, by any worker. A *ClockError is returned
// once everything is done, and is no failure.
func (s *Store) Retire(ctx context.Context) (int, error) {
	dropped := 0
	for page, err := range s.listings(ctx, 0) {
		if err != nil {
			return dropped, fmt.Errorf("read the windows listed under %q: %w", s.prefix, err)
		}
		n, err := s.retire(ctx, page)
		dropped += n
		if err != nil {
			return dropped, fmt.Errorf("drop the windows of %q that are over: %w", s.prefix, err)
		}
	}
	if dropped > 0 {
		if err := s.forgetNames(ctx); err != nil {
			return dropped, err
		}
		if err := s.forgetSealings(ctx); err != nil {
			return dropped, fmt.Errorf("forget when windows of %q were sealed: %w", s.prefix, err)
		}
	}
	err := s.forget(ctx)
	if _, ok := errors.AsType[*ClockError](err); ok {
		return dropped, err
	}
	if err != nil {
		return dropped, fmt.Errorf("forget the dropped windows of %q that are over: %w", s.prefix, err)
	}
	return dropped, nil
}

func (s *Store) retire(ctx context.Context, page []string) (int, error) {
	keys := []string{s.keys.Windows(), s.keys.Final()}
	var pairs []any
	for i := 0; i+1 < len(page); i += 2 {
		if name, listing := page[i], page[i+1]; over(listing) {
			shown, hidden := s.keys.Both(name)
			keys = append(keys, shown, hidden)
			pairs = append(pairs, name, listing)
		}
	}
	if len(pairs) == 0 {
		return 0, nil
	}
	reply, err := s.Call(ctx, lua.Retire, keys, pairs...)
	if err != nil {
		return 0, err
	}
	if len(reply) != 1 {
		return 0, Unexpected(lua.Retire, reply)
	}
	n, _ := reply[0].(int64)
	return int(n), nil
}

// over reports whether a listing may be due, by the clock of this machine: the
// script has the last word.
func over(listing string) bool {
	return goneBy(listing[strings.LastIndexByte(listing, ' ')+1:])
}
