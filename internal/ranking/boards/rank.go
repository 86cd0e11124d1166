package boards

import (
	"context"
	"slices"

	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
)

// MostMembers is the largest number of members in one request.
const MostMembers = 1000

// membersOfCall is the number of members that one call to Redis looks up. A member takes Redis about 8 µs,
// and twice as much with ties, so a call takes at most 5 ms.
const membersOfCall = 200

// Rank reads the standings of at most MostMembers members, in the given order. Rank is 0 for a member
// without a standing. More than membersOfCall members take several calls, one after the other; the ledger
// and the time are those of the first. With several shards each call takes two round trips: to the members'
// shards for their scores, and to the other shards for the number of members above.
func (b *Boards) Rank(ctx context.Context, board string, w periods.Window, members ...string) (ranking.Board, error) {
	q := b.query(board, w, ranking.Rows{})
	return b.look(ctx, &q, members)
}

// RankOfHidden is like Rank, but also finds hidden members. Their rank is the one that they would have
// among the shown members.
func (b *Boards) RankOfHidden(ctx context.Context, board string, w periods.Window, members ...string) (ranking.Board, error) {
	q := b.query(board, w, ranking.Rows{})
	q.Hidden = true
	return b.look(ctx, &q, members)
}

func (b *Boards) look(ctx context.Context, q *ranking.Query, members []string) (ranking.Board, error) {
	if len(members) > MostMembers {
		return ranking.Board{}, ranking.Faultf("read %s: %d members at once: at most %d are", q.Board, len(members), MostMembers)
	}
	some, rest := members, []string(nil)
	if len(some) > membersOfCall {
		some, rest = members[:membersOfCall], members[membersOfCall:]
	}
	all, err := b.lookOnce(ctx, q, some)
	for err == nil && all.Lost == "" && len(rest) > 0 {
		n := min(membersOfCall, len(rest))
		var next ranking.Board
		if next, err = b.lookOnce(ctx, q, rest[:n]); err == nil {
			all.Standings = append(all.Standings, next.Standings...)
			all.Lost, all.LostOn = next.Lost, next.LostOn
			rest = rest[n:]
		}
	}
	return all, err
}

func (b *Boards) lookOnce(ctx context.Context, q *ranking.Query, members []string) (ranking.Board, error) {
	if b.onlyOne() {
		q.Members = members
		p, err := b.shards[0].Read(ctx, q)
		return p.Board, err
	}
	all, _, err := b.rank(ctx, q, members, 0)
	return all, err
}

// Around reads a member's standing and up to n above and n below it, in order. If the member has no
// standing the result is that of Rank.
func (b *Boards) Around(ctx context.Context, board string, w periods.Window, member string, n int) (ranking.Board, error) {
	if err := checkRows(board, n); err != nil {
		return ranking.Board{}, err
	}
	q := b.query(board, w, ranking.Rows{From: ranking.FromMember, Above: n, Below: n + 1, Full: b.extra.Full})
	if b.onlyOne() {
		q.Members = []string{member}
		p, err := b.shards[0].Read(ctx, &q)
		if p.Rows > 0 { // the member's row is one of them, and is repeated after them
			p.Standings = p.Standings[:p.Rows]
		}
		return p.Board, err
	}
	reach := n // rows to read on each side
	if b.extra.Full {
		reach = 2 * n
	}
	all, rows, err := b.rank(ctx, &q, []string{member}, reach)
	if err != nil || len(all.Standings) == 0 || all.Standings[0].Rank == 0 {
		return all, err
	}
	own := all.Standings[0]
	at := slices.IndexFunc(rows, func(st ranking.Standing) bool { return st.Member == member })
	all.Place = own.Rank - 1
	if at < 0 {
		return all, nil // n is 0: no rows were read
	}
	cutAround(&all, &q.Rows, rows[:at], rows[at:])
	return all, b.tie(ctx, &q, &all)
}

// rank looks up members, and reads from each shard up to n rows above the first member, and n below
// including the member's own.
func (b *Boards) rank(ctx context.Context, q *ranking.Query, members []string, n int) (ranking.Board, []ranking.Standing, error) {
	queries := b.each(*q)
	homes := make([]int, len(members))
	at := make([]int, len(members)) // the member's index among those of its shard
	for i := range queries {
		queries[i].Rows = ranking.Rows{}
	}
	for i, m := range members {
		homes[i] = b.home(m)
		q := &queries[homes[i]]
		at[i] = len(q.Members)
		q.Members = append(q.Members, m)
	}
	if n > 0 {
		queries[homes[0]].Rows = ranking.Rows{From: ranking.FromMember, Above: n, Below: n + 1}
	}
	parts, all, err := b.read(ctx, queries)
	if err != nil {
		return all, nil, err
	}
	all.Place, all.Standings = 0, make([]ranking.Standing, len(members))
	// Every shard gets the same list of pivots, including those of its own members, so that the list is
	// built once. With a single member, its own shard has already answered.
	ask := ranking.AboveQuery{Over: n, From: n}
	var counted []int // index of the member that each pivot belongs to
	for i, m := range members {
		p := &parts[homes[i]]
		st := &all.Standings[i]
		st.Member = m
		if p.Rows+at[i] >= len(p.Standings) || p.Standings[p.Rows+at[i]].Rank == 0 {
			continue
		}
		*st = p.Standings[p.Rows+at[i]]
		ask.Pivots, counted = append(ask.Pivots, st.Pivot()), append(counted, i)
		if q.Ties {
			low, high, err := b.bounds(&all, st)
			if err != nil {
				return ranking.Board{}, nil, err
			}
			ask.Bounds = append(ask.Bounds, ranking.Bounds{Low: low, High: high})
		}
	}
	above := make([]ranking.AboveQuery, len(b.shards))
	for shard := range above {
		if parts[shard].Members > 0 && (len(members) > 1 || shard != homes[0]) {
			above[shard] = ask
		}
	}
	answers, err := ranking.AboveEach(ctx, b.shards, q.Board, q.Window, above)
	if err != nil {
		return ranking.Board{}, nil, err
	}
	var around []*ranking.Part
	for shard := range answers {
		a := &answers[shard]
		around = append(around, &a.Part)
		for j, i := range counted {
			if len(a.Counts) == 0 || shard == homes[i] {
				continue
			}
			st := &all.Standings[i]
			st.Rank += a.Counts[j]
			if q.Ties {
				st.More += a.Ties[2*j]
				st.AtLeast += a.Ties[2*j+1]
			}
		}
	}
	if q.Ties {
		for i := range all.Standings {
			st := &all.Standings[i] // the other shards were counted later
			st.More, st.AtLeast = max(0, min(st.More, st.Rank-1)), max(st.AtLeast, st.Rank)
		}
	}
	if n == 0 {
		return all, nil, nil
	}
	return all, merge(append(around, &parts[homes[0]])), nil
}
