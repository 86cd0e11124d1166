package ranking

import (
	"context"
	"fmt"
	"slices"

	"github.com/standings/standings/internal/ranking/lua"
)

// Lost returns the names of the listed windows whose keys Redis has lost, sorted and without repeats. A
// worker that has an event for such a window halts. Lost costs Redis two short commands per window.
func (s *Store) Lost(ctx context.Context) ([]string, error) {
	var all []string
	for page, err := range s.listings(ctx, 0) {
		if err == nil {
			err = s.lost(ctx, page, &all)
		}
		if err != nil {
			return nil, fmt.Errorf("look for boards of %q that are lost: %w", s.prefix, err)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil // a scan may give a name twice
}

// lost checks a page of the listing: name, listing, ….
func (s *Store) lost(ctx context.Context, page []string, all *[]string) error {
	keys := []string{s.keys.Windows()}
	var names []any
	for i := 0; i+1 < len(page); i += 2 {
		shown, hidden := s.keys.Both(page[i])
		keys = append(keys, shown, hidden)
		names = append(names, page[i])
	}
	if len(names) == 0 {
		return nil
	}
	reply, err := s.Call(ctx, lua.There, keys, names...)
	if err != nil {
		return err
	}
	for i, word := range reply {
		if word == "lost" {
			*all = append(*all, page[2*i])
		}
	}
	return nil
}
