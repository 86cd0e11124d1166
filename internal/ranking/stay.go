package ranking

// Windows that stay readable after their retention, until they are stored elsewhere.

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/standings/standings/internal/ranking/lua"
)

// Staying is a window that is to stay readable until a given time.
type Staying struct {
	Name    string // in the listing
	Listing string // as it was read from the shard
	Until   time.Time
}

// Longer makes windows of this shard readable at least until the given times, and returns how many it
// changed. It doesn't change a window whose listing was changed meanwhile.
func (s *Store) Longer(ctx context.Context, windows []Staying) (n int64, err error) {
	return s.stay(ctx, true, windows)
}

// Shorter makes windows readable at most until the given times. In all else it is like Longer.
func (s *Store) Shorter(ctx context.Context, windows []Staying) (n int64, err error) {
	return s.stay(ctx, false, windows)
}

func (s *Store) stay(ctx context.Context, longer bool, windows []Staying) (n int64, err error) {
	for some := range slices.Chunk(windows, sealedAtOnce) {
		keys, args := []string{s.keys.Windows()}, []any(nil)
		for _, w := range some {
			l, err := ParseListing(w.Name, w.Listing)
			was, to := l.Expires, w.Until.UnixMilli()
			if err != nil || to == was || longer != (to > was) {
				continue // invalid, which apply.lua reports, or already long or short enough
			}
			shown, hidden := s.keys.Both(w.Name)
			l.Expires = to
			keys = append(keys, shown, hidden)
			args = append(args, w.Name, w.Listing, l.Text(), was, to)
		}
		if len(args) == 0 {
			continue
		}
		reply, err := s.Call(ctx, lua.Stay, keys, args...)
		if err != nil {
			return n, fmt.Errorf("change until when windows under %q stay: %w", s.prefix, err)
		}
		if len(reply) != 2 || reply[0] != "changed" {
			return n, Unexpected(lua.Stay, reply)
		}
		did, _ := reply[1].(int64)
		n += did
	}
	return n, nil
}

// Stays reads the windows that stay longer: a text for each window and reason maps to the window's original
// expiry.
func (s *Store) Stays(ctx context.Context) (map[string]string, error) {
	return s.Hash(ctx, StaysKey(s.prefix), "which windows stay longer", 0)
}

// AddStays adds entries to Stays.
func (s *Store) AddStays(ctx context.Context, stays map[string]string) error {
	if err := s.SetFields(ctx, StaysKey(s.prefix), stays); err != nil {
		return fmt.Errorf("note which windows under %q stay longer: %w", s.prefix, err)
	}
	return nil
}

// DropStays removes entries from Stays.
func (s *Store) DropStays(ctx context.Context, names ...string) error {
	if err := s.RemoveFields(ctx, StaysKey(s.prefix), names...); err != nil {
		return fmt.Errorf("note which windows under %q stay longer: %w", s.prefix, err)
	}
	return nil
}
