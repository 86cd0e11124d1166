package ranking

// Members' names. Each shard has a hash of the names of its members (lua/names.lua).

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sync/errgroup"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/lua"
)

// namedAtOnce is how many names a call reads or writes; it takes about a millisecond of Redis's time.
const namedAtOnce = 500

// Names returns the names of some of the shard's members. Members without a name are left out.
func (s *Store) Names(ctx context.Context, members []string) (map[string]string, error) {
	all := map[string]string{}
	for some := range slices.Chunk(members, namedAtOnce) {
		found, err := s.HashFields(ctx, s.keys.Names(), some)
		if err != nil {
			return nil, fmt.Errorf("read what members are called: %w", err)
		}
		for i, text := range found {
			if name, ok := nameIn(text); ok {
				all[some[i]] = name
			}
		}
	}
	return all, nil
}

// NamesEach returns the names of some members from all shards of a prefix. Members without a name are left
// out.
func NamesEach(ctx context.Context, shards []*Store, members []string) (map[string]string, error) {
	of := ledger.Shards(len(shards))
	homes, names := make([][]string, of), make([]map[string]string, of)
	for _, m := range members {
		home := of.Of(xxhash.Sum64String(m))
		homes[home] = append(homes[home], m)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(askedAtOnce)
	for i, s := range shards {
		if len(homes[i]) == 0 {
			continue
		}
		group.Go(func() (err error) {
			names[i], err = s.Names(ctx, homes[i])
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	all := make(map[string]string, len(members))
	for _, some := range names {
		maps.Copy(all, some)
	}
	return all, nil
}

// NameDifferences sets Called in differences. It searches the prefixes in order, each given by all of its
// shards, and uses the first name found for a member.
func NameDifferences(ctx context.Context, all []Difference, prefixes ...[]*Store) error {
	names := map[string]string{}
	for _, shards := range prefixes {
		var unnamed []string // each member once, in however many windows it differs
		for i := range all {
			if member := all[i].Member; names[member] == "" {
				unnamed = append(unnamed, member)
			}
		}
		slices.Sort(unnamed)
		found, err := NamesEach(ctx, shards, slices.Compact(unnamed))
		if err != nil {
			return err
		}
		maps.Copy(names, found)
	}
	for i := range all {
		all[i].Called = names[all[i].Member]
	}
	return nil
}

// nameIn returns the name in an entry of the hash.
func nameIn(text string) (string, bool) {
	words := strings.SplitN(text, " ", 3)
	if len(words) < 3 {
		return "", false
	}
	return words[2], true
}

// EachName passes the hash to do, a page at a time: member, entry, member, entry, …. The pages aren't read
// as of one moment, and an entry may come twice.
func (s *Store) EachName(ctx context.Context, do func(entries []string) error) error {
	return s.OnOneServer(ctx, func() error {
		for page, err := range s.Pages(ctx, s.keys.Names(), 0) {
			if err == nil {
				err = do(page)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// MergeNames merges entries of another shard's hash into the shard's own (lua/load.lua).
func (s *Store) MergeNames(ctx context.Context, entries []string) error {
	args := []any{"", "", "names", len(entries)}
	for _, text := range entries {
		args = append(args, text)
	}
	_, err := s.Call(ctx, lua.Load, []string{s.keys.Names(), s.keys.Names(), s.keys.Banned()}, args...)
	return err
}

// askedAtOnce is how many shards are read concurrently.
const askedAtOnce = 32
