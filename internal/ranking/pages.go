package ranking

// Whole hashes and lists of keys, a page per call, so that Redis's other calls are barely delayed.

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/standings/standings/internal/redisconn"
	"github.com/standings/standings/internal/retry"
)

// OnOneServer runs do, which uses the cursors of a scan on the server that has the ledger. If that server
// failed over or restarted meanwhile, it runs do again.
func (s *Store) OnOneServer(ctx context.Context, do func() error) error {
	return redisconn.OnOneServer(ctx, s.timeout, s.master, do)
}

// Hash reads a whole hash, page by page and so not as of one moment, and waits for pause between two pages.
// what names the hash in errors.
func (s *Store) Hash(ctx context.Context, key, what string, pause time.Duration) (map[string]string, error) {
	all := map[string]string{}
	err := s.OnOneServer(ctx, func() error {
		clear(all)
		for page, err := range s.Pages(ctx, key, pause) {
			if err != nil {
				return err
			}
			for i := 0; i+1 < len(page); i += 2 {
				all[page[i]] = page[i+1]
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read %s under %q: %w", what, s.prefix, s.explain(err, ""))
	}
	return all, nil
}

// Pages yields a hash page by page: field, value, field, value, …. It waits for pause between two pages, and
// ends after the first error. A field may come twice. The cursors are valid on one server process only: call
// it in OnOneServer. Redis treats a scan's COUNT as a hint: it returns a small hash
// (hash-max-listpack-entries) as a whole, so Pages cuts the answer.
func (s *Store) Pages(ctx context.Context, key string, pause time.Duration) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		first := true
		for cursor := uint64(0); ; {
			answer, next, err := s.scanned(ctx, key, cursor)
			if err != nil {
				yield(nil, err)
				return
			}
			for page := range slices.Chunk(answer, 2*listedAtOnce) {
				if !first {
					if err := retry.Sleep(ctx, pause); err != nil {
						yield(nil, err)
						return
					}
				}
				first = false
				if !yield(page, nil) {
					return
				}
			}
			if cursor = next; cursor == 0 {
				return
			}
		}
	}
}

func (s *Store) scanned(ctx context.Context, key string, cursor uint64) ([]string, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	page, next, err := s.client.HScan(ctx, key, cursor, "", listedAtOnce).Result()
	return page, next, s.OfShard(err)
}

// listedAtOnce is how many windows of the listing a call reads; it takes about a millisecond of Redis's
// time.
const listedAtOnce = 500

// HashFields reads some fields of a hash; a field that doesn't exist is empty.
func (s *Store) HashFields(ctx context.Context, key string, names []string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	reply, err := s.client.HMGet(ctx, key, names...).Result()
	if err != nil {
		return nil, s.explain(s.OfShard(err), "")
	}
	all := make([]string, len(reply))
	for i, v := range reply {
		all[i], _ = v.(string)
	}
	return all, nil
}

// SetFields sets fields of a hash.
func (s *Store) SetFields(ctx context.Context, key string, fields map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.explain(s.client.HSet(ctx, key, fields).Err(), "")
}

// RemoveFields removes fields of a hash.
func (s *Store) RemoveFields(ctx context.Context, key string, fields ...string) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.explain(s.client.HDel(ctx, key, fields...).Err(), "")
}

// size returns the number of fields of a hash.
func (s *Store) size(ctx context.Context, key, what string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	n, err := s.client.HLen(ctx, key).Result()
	if err != nil {
		return 0, fmt.Errorf("count %s under %q: %w", what, s.prefix, s.explain(err, ""))
	}
	return n, nil
}

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
