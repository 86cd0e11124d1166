package boards

import (
	"context"

	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
)

// Rank reads the standings of some members, in the order in which they are given; Rank is 0 for
// a member who isn't there. It takes two round trips: to their shards for their scores, and to
// the others for those above.
func (b *Boards) Rank(ctx context.Context, board string, w periods.Window, members ...string) (ranking.Board, error) {
	if b.onlyOne() {
		return b.shards[0].Rank(ctx, board, w, members...)
	}
	all, _, err := b.rank(ctx, ranking.Query{Board: board, Window: w}, members, 0)
	return all, err
}

// RankOfHidden is Rank that looks members up who aren't shown, too: the rank is the one that they
// would have among those who are.
func (b *Boards) RankOfHidden(ctx context.Context, board string, w periods.Window, members ...string) (ranking.Board, error) {
	if b.onlyOne() {
		p, err := b.shards[0].Read(ctx, &ranking.Query{Board: board, Window: w, Members: members, Hidden: true})
		return p.Board, err
	}
	all, _, err := b.rank(ctx, ranking.Query{Board: board, Window: w, Hidden: true}, members, 0)
	return all, err
}

// Around reads a member's standing and up to n above and below it, in order. Of a member who
// isn't there it is as Rank.
func (b *Boards) Around(ctx context.Context, board string, w periods.Window, member string, n int) (ranking.Board, error) {
	if b.onlyOne() {
		return b.shards[0].Around(ctx, board, w, member, n)
	}
	all, rows, err := b.rank(ctx, ranking.Query{Board: board, Window: w}, []string{member}, n)
	if err != nil || len(all.Standings) == 0 || all.Standings[0].Rank == 0 {
		return all, err
	}
	rank, at := all.Standings[0].Rank, 0
	for at < len(rows) && rows[at].Member != member {
		at++
	}
	if first := max(0, at-n); at < len(rows) {
		all.Standings = page(rows, rank-int64(at), first, at+n+1-first)
	}
	return all, nil
}

// rank looks members up, and reads up to n rows of each shard above the first of them and below,
// its own among them.
func (b *Boards) rank(ctx context.Context, q ranking.Query, members []string, n int) (ranking.Board, []ranking.Standing, error) {
	queries := b.each(q)
	at := make([]int, len(members)) // of a member among those of its shard
	for i, m := range members {
		q := &queries[b.home(m)]
		at[i] = len(q.Members)
		q.Members = append(q.Members, m)
	}
	if n > 0 {
		queries[b.home(members[0])].Rows = ranking.Rows{From: ranking.FromMember, Above: n, Below: n + 1}
	}
	parts, all, err := b.read(ctx, queries)
	if err != nil {
		return all, nil, err
	}
	above := make([]ranking.AboveQuery, len(b.shards))
	asked := make([][]int, len(b.shards)) // which members a shard counts above
	for i, m := range members {
		home := b.home(m)
		p := &parts[home]
		all.Standings = append(all.Standings, ranking.Standing{Member: m})
		if p.Rows+at[i] >= len(p.Standings) || p.Standings[p.Rows+at[i]].Rank == 0 {
			continue
		}
		all.Standings[i] = p.Standings[p.Rows+at[i]]
		for shard := range b.shards {
			if shard != home && parts[shard].Members > 0 {
				q := &above[shard]
				q.Pivots, asked[shard] = append(q.Pivots, p.Standings[p.Rows+at[i]].Pivot()), append(asked[shard], i)
				q.Over, q.From = n, n
			}
		}
	}
	counted, err := ranking.AboveEach(ctx, b.shards, q.Board, q.Window, above)
	if err != nil {
		return ranking.Board{}, nil, err
	}
	var around []*ranking.Part
	for shard := range counted {
		for j, count := range counted[shard].Counts {
			all.Standings[asked[shard][j]].Rank += count
		}
		around = append(around, &counted[shard].Part)
	}
	if n == 0 {
		return all, nil, nil
	}
	return all, merge(append(around, &parts[b.home(members[0])])), nil
}
