package ranking

// What members are called: in each shard a hash of its members' names (lua/names.lua).

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sync/errgroup"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/lua"
	"github.com/standings/standings/internal/redisconn"
)

// namedAtOnce is how many names are read or written a call: a millisecond of Redis's time or so.
const namedAtOnce = 500

// Names are what some of the shard's members are called; who has no name isn't in it.
func (s *Store) Names(ctx context.Context, members []string) (map[string]string, error) {
	all := map[string]string{}
	for some := range slices.Chunk(members, namedAtOnce) {
		found, err := s.client.HMGet(redisconn.Within(ctx, s.timeout), s.keys.Names(), some...).Result()
		if err != nil {
			return nil, fmt.Errorf("read what members are called: %w", s.explain(err, ""))
		}
		for i, text := range found {
			text, _ := text.(string)
			if name, ok := nameIn(text); ok {
				all[some[i]] = name
			}
		}
	}
	return all, nil
}

// NamesEach are what some members are called, of all shards of a prefix; who has no name isn't in it.
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

// NameDifferences says of standings that differ what their members are called: by the first of
// some prefixes, each given by all of its shards, that has a name for them.
func NameDifferences(ctx context.Context, all []Difference, prefixes ...[]*Store) error {
	names := map[string]string{}
	for _, shards := range prefixes {
		var unnamed []string // each once, in however many windows it differs
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

// nameIn is the name in an entry of the hash.
func nameIn(text string) (string, bool) {
	words := strings.SplitN(text, " ", 3)
	if len(words) < 3 {
		return "", false
	}
	return words[2], true
}

// EachName goes through the hash: member, entry, member, entry, … It isn't read at one moment, and
// an entry may come twice.
func (s *Store) EachName(ctx context.Context, do func(entries []string) error) error {
	return s.onOneServer(ctx, func() error {
		for page, err := range s.pages(ctx, s.keys.Names(), 0) {
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

// MergeNames adds the entries of another hash.
func (s *Store) MergeNames(ctx context.Context, entries []string) error {
	args := []any{"", "", "names", len(entries)}
	for _, text := range entries {
		args = append(args, text)
	}
	_, err := s.Call(ctx, lua.Load, []string{s.keys.Names(), s.keys.Names(), s.keys.Banned()}, args...)
	return err
}

// forgetNames removes those of members whose last window has gone.
func (s *Store) forgetNames(ctx context.Context) error {
	err := s.EachName(ctx, func(entries []string) error {
		gone := []any{0}
		for i := 0; i+1 < len(entries); i += 2 {
			words := strings.SplitN(entries[i+1], " ", 3)
			if len(words) < 3 {
				continue
			}
			if at, err := strconv.ParseInt(words[1], 10, 64); err == nil && goneBy(at) {
				gone = append(gone, entries[i], entries[i+1], at)
			}
		}
		_, err := s.retired(ctx, []string{s.keys.Names(), s.keys.Names()}, gone)
		return err
	})
	if err != nil {
		return fmt.Errorf("remove the names of members of %q who are in no window any more: %w", s.prefix, err)
	}
	return nil
}
