// Package boards reads and seals the standings under a prefix over all shards together. Each shard has the
// members of one range of hashes.
//
// A top is a merge of the shards' rows, and a rank is one plus the members above, summed over shards.
// Members with a greater score are above, and among equal scores those with a greater id: Redis keeps each
// shard's rows in this order, and every layout's scores are made for it. Each shard is read at its own
// instant; all shards of one server are read in one round trip.
//
// With one shard every read is a single call to that shard.
package boards

import (
	"context"
	"errors"

	"github.com/cespare/xxhash/v2"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

// Boards is all shards of the standings under a prefix. It is safe for concurrent use.
type Boards struct {
	shards []*ranking.Store
	of     ledger.Shards
	extra  Extra
}

// New returns Boards with one store for each of Config.Shards shards. It ignores Config.Shard, and does not
// call Redis.
func New(c ranking.Config) *Boards {
	b := &Boards{of: max(c.Shards, 1)}
	for c.Shard = range int(b.of) {
		b.shards = append(b.shards, ranking.New(c))
	}
	return b
}

// Together returns Boards made of the stores of all shards, in order.
func Together(shards []*ranking.Store) *Boards {
	return &Boards{shards: shards, of: ledger.Shards(len(shards))}
}

// Shards returns the stores of all shards, in order.
func (b *Boards) Shards() []*ranking.Store { return b.shards }

// Of returns the number of shards.
func (b *Boards) Of() ledger.Shards { return b.of }

// home returns the number of the shard that has the member.
func (b *Boards) home(member string) int { return b.of.Of(xxhash.Sum64String(member)) }

// read runs each shard's query. If no shard has any data under the prefix the error is a
// *ranking.SchemaError, as with one shard. If only some shards have none, those are lost.
func (b *Boards) read(ctx context.Context, queries []ranking.Query) (parts []ranking.Part, all ranking.Board, err error) {
	parts, errs := ranking.ReadEach(ctx, b.shards, queries)
	var nothing error
	empty := 0
	for i, err := range errs {
		if err == nil {
			continue
		}
		if other, ok := errors.AsType[*ranking.SchemaError](err); !ok || other.Found != "" {
			return nil, ranking.Board{}, err
		}
		if empty++; nothing == nil {
			nothing = errs[i]
		}
	}
	all = b.together(parts, errs)
	if empty == len(parts) {
		var bare *ranking.SchemaError
		errors.As(nothing, &bare)
		return nil, all, bare
	}
	return parts, all, nil
}

// together merges the parts of all shards, except for the standings. A shard lists a window once it has a
// member in it, so a window is listed if any shard lists it.
func (b *Boards) together(parts []ranking.Part, errs []error) ranking.Board {
	all := parts[0].Board
	all.Standings, all.Incomplete, all.Members, all.Listed, all.Lost = nil, nil, 0, false, ""
	all.Place, all.Counts, all.Revision = 0, nil, parts[0].Revision
	for _, p := range parts {
		all.Members += p.Members
		all.Place += p.Place
		for i, n := range p.Counts {
			if i == len(all.Counts) {
				all.Counts = append(all.Counts, 0)
			}
			all.Counts[i] += n
		}
		if p.Listed {
			all.Window = p.Window // with the listed bounds
		}
		all.Listed, all.Revision = all.Listed || p.Listed, min(all.Revision, p.Revision)
		all.Incomplete = append(all.Incomplete, p.Incomplete...)
		all.Shards = append(all.Shards, p.Beside)
	}
	all.Incomplete = compact(all.Incomplete)
	all.Beside = ledger.Together(all.Shards)
	for i, p := range parts {
		lost := p.Lost
		if lost == "" && errs[i] != nil && all.Listed {
			lost = ranking.LostShard
		}
		if lost != "" {
			shard, of := b.shards[i].Shard()
			all.Lost, all.LostOn = lost, ranking.ShardName(shard, of, b.shards[i].Addr())
			break
		}
	}
	return all
}

// each returns the same query for every shard.
func (b *Boards) each(q ranking.Query) []ranking.Query {
	all := make([]ranking.Query, len(b.shards))
	for i := range all {
		all[i] = q
	}
	return all
}

// onlyOne reports whether there is only one shard, which answers by itself.
func (b *Boards) onlyOne() bool { return b.of == 1 }
