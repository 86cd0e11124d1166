package ranking

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/standings/standings/internal/ranking/lua"
)

// Staying is a window that is to be readable longer.
type Staying struct {
	Name    string // in the listing
	Listing string // as it was read of the shard
}

// Longer has windows be readable until a time at least, on this shard, and returns how many are
// longer than they were to be. One that was listed otherwise meanwhile isn't among them.
func (s *Store) Longer(ctx context.Context, windows []Staying, until time.Time) (n int64, err error) {
	for some := range slices.Chunk(windows, sealedAtOnce) {
		keys, args := []string{s.keys.Windows()}, []any(nil)
		for _, w := range some {
			shown, hidden := s.keys.Both(w.Name)
			keys = append(keys, shown, hidden)
			args = append(args, w.Name, w.Listing, until.UnixMilli())
		}
		reply, err := s.Call(ctx, lua.Longer, keys, args...)
		if err != nil {
			return n, fmt.Errorf("have windows under %q stay longer: %w", s.prefix, err)
		}
		if len(reply) != 2 || reply[0] != "longer" {
			return n, Unexpected(lua.Longer, reply)
		}
		did, _ := reply[1].(int64)
		n += did
	}
	return n, nil
}
