package ranking

import (
	"context"
	"slices"
	"time"

	"github.com/standings/standings/internal/retry"
)

// unlinked is how many keys are removed a call: a millisecond of Redis's time or so.
const unlinked = 500

// Unlink removes keys in their order, some hundred a call, with a pause after each: Redis
// frees large ones in the background. A context that ends is heeded after every call.
// removed, which may be nil, receives how many are gone.
func (s *Store) Unlink(ctx context.Context, keys []string, pause time.Duration, removed func(n int)) error {
	done := 0
	for some := range slices.Chunk(keys, unlinked) {
		if err := s.unlinkSome(ctx, some); err != nil {
			return err
		}
		done += len(some)
		if removed != nil {
			removed(done)
		}
		if done == len(keys) {
			break // nobody is waited for
		}
		if err := retry.Sleep(ctx, pause); err != nil {
			return err
		}
	}
	return nil
}

// unlinkSome sends a command a key, in one go: keys of several shards are of several nodes.
func (s *Store) unlinkSome(ctx context.Context, keys []string) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	pipe := s.client.Pipeline()
	for _, key := range keys {
		pipe.Unlink(ctx, key)
	}
	_, err := pipe.Exec(ctx)
	return s.explain(err, "")
}
