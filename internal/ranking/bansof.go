package ranking

import (
	"context"
	"fmt"
)

// BansOf reads a member's bans that apply to a board: the one on all boards, and the one on that board. On
// a shard that isn't the member's it finds none.
func (s *Store) BansOf(ctx context.Context, board, member string) ([]Ban, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	fields := []string{":" + member, board + ":" + member}
	found, err := s.client.HMGet(ctx, s.keys.Banned(), fields...).Result()
	if err != nil {
		return nil, fmt.Errorf("read whether %q is banned under %q: %w", clip(member), s.prefix, s.explain(err, ""))
	}
	var all []Ban
	for i, field := range fields {
		if state, ok := found[i].(string); ok {
			if b, ok := readBan(field, state); ok {
				all = append(all, b)
			}
		}
	}
	return all, nil
}
