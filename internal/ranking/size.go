package ranking

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
)

// Windows returns the number of listed windows.
func (s *Store) Windows(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	n, err := s.client.HLen(ctx, s.keys.Windows()).Result()
	if err != nil {
		return 0, fmt.Errorf("count the windows listed under %q: %w", s.prefix, s.explain(err, ""))
	}
	return n, nil
}

// Seals returns a number that every seal on this shard changes.
func (s *Store) Seals(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	n, err := s.client.HLen(ctx, s.keys.Final()).Result() // seal.lua adds a ledger
	if err != nil {
		return 0, fmt.Errorf("count the seals under %q: %w", s.prefix, s.explain(err, ""))
	}
	return n, nil
}

// AddBoards adds the hashes of the names of all boards that have a listed window. It reads the listing page
// by page and waits for pause between two pages, so that it barely delays Redis's other calls. A hash takes
// 8 bytes.
func (s *Store) AddBoards(ctx context.Context, pause time.Duration, boards map[uint64]struct{}) error {
	for page, err := range s.listings(ctx, pause) {
		if err != nil {
			return fmt.Errorf("count the boards under %q: %w", s.prefix, err)
		}
		for i := 0; i < len(page); i += 2 {
			name, _, _ := strings.Cut(page[i], ":")
			boards[xxhash.Sum64String(name)] = struct{}{}
		}
	}
	return nil
}
