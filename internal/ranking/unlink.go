package ranking

import (
	"context"
	"slices"
	"time"

	"github.com/standings/standings/internal/retry"
)

// unlinked is how many keys a call removes; it takes about a millisecond of Redis's time.
const unlinked = 500

// Unlink removes keys in order, 500 per call, and waits for pause after each call. Redis frees large keys
// in the background. Unlink stops after the current call if the context ends. removed, which may be nil,
// receives the number of keys removed so far.
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
			break // no pause after the last call
		}
		if err := retry.Sleep(ctx, pause); err != nil {
			return err
		}
	}
	return nil
}

// unlinkSome pipelines one command per key, because keys of several shards may be on several nodes.
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
