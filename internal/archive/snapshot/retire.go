package snapshot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	// abandoned is how old files have to be that belong to no snapshot: their process has died.
	abandoned = 24 * time.Hour
	// longest is how long a snapshot may take. The rest of abandoned is for clocks that differ, and for a
	// process that is paused before its last write. Where that writes a manifest all the same, List
	// misses the files.
	longest = abandoned / 2
)

// Retire removes all snapshots of a prefix but the newest so many, of which there is at least one, and
// what nobody finished. One that can't be read isn't one of those, and isn't removed.
func (s Store) Retire(ctx context.Context, prefix string, keep int, now time.Time) (removed []string, err error) {
	files, err := s.Files.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	all, err := s.listed(ctx, files)
	errs := []error{err}
	kept := 0
	for i := range all {
		m := &all[i]
		if m.Prefix != prefix {
			continue
		}
		if kept++; kept > max(keep, 1) {
			if err := s.remove(ctx, m); err != nil {
				errs = append(errs, err)
				continue
			}
			removed = append(removed, m.Name)
		}
	}
	errs = append(errs, s.clear(ctx, files, now.Add(-abandoned)), s.Files.Sweep(ctx, now.Add(-abandoned)))
	return removed, errors.Join(errs...)
}

// remove removes the manifest first: what is left of one that is removed in part is no snapshot.
func (s Store) remove(ctx context.Context, m *Manifest) error {
	names := []string{manifestName}
	for _, f := range m.Files {
		names = append(names, f.Name)
	}
	for _, name := range names {
		if err := s.Files.Remove(ctx, m.Name+"/"+name); err != nil {
			return fmt.Errorf("remove a snapshot: %w", err)
		}
	}
	return nil
}

// clear removes the files of who died, while writing them or while removing a snapshot: those that have
// no manifest, of which none was written since a time.
func (s Store) clear(ctx context.Context, files []FileInfo, before time.Time) error {
	used := map[string]bool{} // names of snapshots that are whole, or may be written
	for _, f := range files {
		name, file, _ := strings.Cut(f.Name, "/")
		if file == manifestName || !f.Written.Before(before) {
			used[name] = true
		}
	}
	var errs []error
	for _, f := range files {
		name, _, _ := strings.Cut(f.Name, "/")
		if nameForm.MatchString(name) && !used[name] {
			errs = append(errs, s.Files.Remove(ctx, f.Name))
		}
	}
	return errors.Join(errs...)
}
