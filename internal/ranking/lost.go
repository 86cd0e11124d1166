package ranking

import (
	"context"
	"fmt"
	"slices"
)

// Lost names the windows that are listed and whose keys are gone, in order, once each: a
// worker that has an event for one halts. It costs Redis two short commands a window.
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

// lost compares a page of the listing: name, listing, ….
func (s *Store) lost(ctx context.Context, page []string, all *[]string) error {
	args := []any{nil, nil, nil, s.keys.windows()}
	var names []any
	for i := 0; i+1 < len(page); i += 2 {
		args = append(args, s.keys.listed(page[i]))
		names = append(names, page[i])
	}
	if len(names) == 0 {
		return nil
	}
	reply, err := s.run(ctx, lostScript, len(args)-3, append(args, names...))
	if err != nil {
		return err
	}
	lost, err := texts(reply)
	*all = append(*all, lost...)
	return err
}
