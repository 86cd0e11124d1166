package reshard

import (
	"context"
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// copyNames copies the names of members, each to the shard of its member. Names do not change while the old
// shards are held.
func (c *copier) copyNames(ctx context.Context) error {
	for i, s := range c.from {
		err := tries(ctx, func() error {
			return s.EachName(ctx, func(entries []string) error {
				parts := make([][]any, len(c.to))
				for j := 0; j+1 < len(entries); j += 2 {
					to := &parts[c.To.Of(xxhash.Sum64String(entries[j]))]
					*to = append(*to, entries[j], entries[j+1])
				}
				for to, values := range parts {
					if len(values) == 0 {
						continue
					}
					if err := c.pasteOne(ctx, c.to[to], c.to[to].Keys().Names(), "hash", values); err != nil {
						return err
					}
				}
				return nil
			})
		})
		if err != nil {
			return fmt.Errorf("copy what members of shard %d are called: %w", i, err)
		}
	}
	return nil
}
