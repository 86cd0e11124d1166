package restore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/standings/standings/internal/archive/snapshot"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/rebuild"
)

// choose reads all of the snapshot that is named, or of the newest one of a prefix that is whole.
func choose(ctx context.Context, from snapshot.Store, name, prefix string, note func(string)) (*rebuild.Snapshot, error) {
	if name != "" {
		m, err := from.Open(ctx, name)
		if err != nil {
			return nil, err
		}
		if m.Prefix != prefix {
			return nil, fmt.Errorf("the snapshot %s is of the prefix %q, and redis.prefix is %q", m.Name, m.Prefix, prefix)
		}
		return survey(ctx, from, m)
	}
	all, err := from.List(ctx)
	if err != nil {
		note(err.Error())
	}
	for i := range all {
		if all[i].Prefix != prefix {
			continue
		}
		s, err := survey(ctx, from, &all[i])
		if _, damaged := errors.AsType[*snapshot.DamagedError](err); damaged {
			note(fmt.Sprintf("passing over a snapshot that is damaged: %v", err))
			continue
		}
		return s, err
	}
	if err != nil {
		return nil, fmt.Errorf("there is no snapshot of the prefix %q that could be read: %w", prefix, err)
	}
	return nil, fmt.Errorf("there is no snapshot of the prefix %q in %s", prefix, from.Files)
}

// survey reads all of a snapshot, and compares its checksums.
func survey(ctx context.Context, from snapshot.Store, m *snapshot.Manifest) (*rebuild.Snapshot, error) {
	s := &rebuild.Snapshot{Name: m.Name}
	for shard := range m.Files {
		one, err := from.Survey(ctx, m, shard)
		if err != nil {
			return nil, fmt.Errorf("read the snapshot %s: %w", m.Name, err)
		}
		s.Surveys = append(s.Surveys, one)
	}
	s.Pages = func(ctx context.Context, shard int, each func(*ranking.SnapshotPage) error) error {
		return from.Pages(ctx, m, shard, s.Surveys[shard], each)
	}
	return s, nil
}

// topicsOf are those that the snapshot has partitions of.
func topicsOf(s *rebuild.Snapshot) (all []string) {
	for _, one := range s.Surveys {
		for field := range one.Reach {
			if p, err := ledger.ParsePartition(field); err == nil && !slices.Contains(all, p.Topic) {
				all = append(all, p.Topic)
			}
		}
	}
	return all
}
