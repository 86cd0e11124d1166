package ranking

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/standings/standings/internal/ranking/lua"
)

// KeyOutlives is how long a window's key outlives its retention.
const KeyOutlives = 24 * time.Hour

// RetireAfter is how long after a window's expiry its listing is removed. Its key expires a day earlier.
const RetireAfter = 48 * time.Hour

// Retire removes the listings of windows that have been over for two days, with the names of members who
// were in no other window, and returns the number of listings removed. Redis's clock decides, and a listing
// that changed after it was read stays. Any worker calls Retire from time to time. A *ClockError is
// returned after everything is done; it doesn't mean that Retire failed.
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
	keys, entries := []string{s.keys.Windows(), s.keys.Final()}, []any{2}
	for i := 0; i+1 < len(page); i += 2 {
		if l, err := ParseListing(page[i], page[i+1]); err == nil && goneBy(l.Expires) {
			shown, hidden := s.keys.Both(page[i])
			keys = append(keys, shown, hidden)
			entries = append(entries, page[i], page[i+1], l.Expires)
		}
	}
	return s.retired(ctx, keys, entries)
}

// retired calls retire.lua for entries of a hash.
func (s *Store) retired(ctx context.Context, keys []string, entries []any) (int, error) {
	if len(entries) == 1 {
		return 0, nil
	}
	reply, err := s.Call(ctx, lua.Retire, keys, entries...)
	if err != nil {
		return 0, err
	}
	if len(reply) != 1 {
		return 0, Unexpected(lua.Retire, reply)
	}
	n, _ := reply[0].(int64)
	return int(n), nil
}

// goneBy reports whether an entry that was used until expires, Unix ms, may be due for removal by this
// machine's clock. The script decides by Redis's clock.
func goneBy(expires int64) bool {
	return !time.Now().Before(time.UnixMilli(expires).Add(RetireAfter))
}
