package boards

// A page that is far down: how many of the members above it each shard has is found by a search,
// without reading them.
//
// What is looked for is a pivot, a row with at most as many rows above it as the page has, and
// hardly fewer. In a round every shard is asked for some of its rows, evenly spread over those that
// may still be the first of its page. Of such a sample its rank in its own shard is known, and in
// each other shard it lies between two samples: so from how many to how many rows are above it.
//
//	P, the pivot so far        rows above it are all above the page
//	│   ·   ·   x   ·   ·      samples: x is the lowest with at most offset rows above it
//	Q                          whoever is at or below it isn't above the page
//
// The lowest sample that has at most offset rows above it is the next P, the highest that has at
// least offset is the next Q. With 64 samples a shard what is left of the rows shrinks some thirty
// times a round. The rows are read from P on, with the number of those above it as of the same
// moment: whatever changed during the search, the page is what each shard has in that moment.

import (
	"context"
	"errors"
	"slices"

	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
)

const (
	samplesInAll = 1024 // in a round, of all shards: two milliseconds of a server that has them all
	leastSamples = 16   // of a shard
	mostSamples  = 128
	nearEnough   = 1000 // rows that are read at most beyond those of the page
	mostRounds   = 40   // what a board that stands still never needs
	mostSearches = 6
)

// errRestless may pass: whoever tries again may find it.
var errRestless = errors.New("the board changes faster than a page this far down can be found in it")

// farDown reads a page by a search.
func (b *Boards) farDown(ctx context.Context, query *ranking.Query, offset, limit int) (ranking.Board, error) {
	board, w, q := query.Board, query.Window, *query
	q.Rows, q.Ties = ranking.Rows{}, false
	// The pivot is sought a little above the page, and rows are read for a little more: while
	// the search goes on members rise and fall.
	slack, share := 16, b.share(limit)
	for range mostSearches {
		parts, all, err := b.read(ctx, b.each(q))
		if err != nil || all.Members <= int64(offset) {
			return all, err
		}
		s := newSearch(b, board, w, parts, max(0, offset-slack))
		if err := s.run(ctx); err != nil {
			return ranking.Board{}, err
		}
		standings, ok, err := s.page(ctx, offset, limit, slack, share)
		if err != nil {
			return ranking.Board{}, err
		}
		if ok {
			all.Standings, all.Place = standings, int64(offset)
			return all, b.tie(ctx, query, &all)
		}
		slack, share = 8*slack, min(limit, 4*share)
	}
	return ranking.Board{}, errRestless
}

// search is one for the first of a page.
type search struct {
	*Boards
	board  string
	window periods.Window
	target int64 // rows above the page
	// rows reads those of each shard at some ranks.
	rows func(ctx context.Context, ranks [][]int64) ([][]ranking.Pivot, error)

	// Of each shard: at least low and at most high of its rows are above the page. Those before
	// low are above the pivot, those from high on are none of them above the floor.
	low, high []int64
	pivot     ranking.Pivot
	floor     *ranking.Pivot // nil while there is none
}

func newSearch(b *Boards, board string, w periods.Window, parts []ranking.Part, target int) *search {
	s := &search{Boards: b, board: board, window: w, target: int64(target), pivot: ranking.TopPivot()}
	s.rows = func(ctx context.Context, ranks [][]int64) ([][]ranking.Pivot, error) {
		return ranking.RowsEach(ctx, b.shards, board, w, ranks)
	}
	for _, p := range parts {
		s.low, s.high = append(s.low, 0), append(s.high, min(p.Members, int64(target)))
	}
	return s
}

// left is how many rows there still are of which it isn't known whether they are above the page.
func (s *search) left() int64 {
	n := int64(0)
	for i := range s.low {
		n += s.high[i] - s.low[i]
	}
	return n
}

// run narrows the search down until the rest can be read.
func (s *search) run(ctx context.Context) error {
	for range mostRounds {
		if s.left() <= max(nearEnough, 2*int64(s.of)) {
			return nil
		}
		ranks, samples := make([][]int64, len(s.low)), min(max(samplesInAll/int64(s.of), leastSamples), mostSamples)
		for i := range ranks {
			ranks[i] = spread(s.low[i], s.high[i], samples)
		}
		rows, err := s.rows(ctx, ranks)
		if err != nil {
			return err
		}
		var all []sample
		for i := range rows {
			for j, p := range rows[i] {
				if p.Member != "" {
					all = append(all, sample{p, i, ranks[i][j]})
				}
			}
		}
		s.narrow(all)
	}
	return errRestless
}

// spread is the ranks of at most so many samples from low to high.
func spread(low, high, most int64) []int64 {
	width := high - low
	most = min(most, width)
	var all []int64
	for i := range most {
		all = append(all, low+i*width/most)
	}
	return all
}

// sample is a row of a shard.
type sample struct {
	ranking.Pivot
	shard int
	rank  int64 // in the shard
}

// narrow moves pivot and floor by samples of all shards.
func (s *search) narrow(all []sample) {
	slices.SortFunc(all, func(a, b sample) int { return comparePivots(a.Pivot, b.Pivot) })
	// How many rows of each shard are above the sample that is looked at: at least, at most.
	least, most := slices.Clone(s.low), slices.Clone(s.high)
	for i := len(all) - 1; i >= 0; i-- { // the rank of a shard's first sample
		most[all[i].shard] = all[i].rank
	}
	next := make([]int64, len(all)) // the rank of the shard's sample after this one
	after := slices.Clone(s.high)
	for i := len(all) - 1; i >= 0; i-- {
		next[i] = after[all[i].shard]
		after[all[i].shard] = all[i].rank
	}
	low, high := slices.Clone(s.low), slices.Clone(s.high)
	pivot, floor := s.pivot, s.floor
	reached := false // the pivot so far
	for i, x := range all {
		if floor != nil && comparePivots(x.Pivot, *floor) >= 0 {
			break
		}
		if !reached && comparePivots(x.Pivot, pivot) >= 0 {
			reached = true
			copy(low, least)
		}
		least[x.shard], most[x.shard] = x.rank, x.rank // within its own shard it is known
		if reached && sum(most) <= s.target {
			pivot = x.Pivot
			copy(low, least)
		}
		if reached && sum(least) >= s.target {
			floor = &all[i].Pivot
			copy(high, most)
			break
		}
		least[x.shard], most[x.shard] = x.rank+1, next[i]
	}
	if !reached { // no sample is below it
		copy(low, least)
	}
	if floor == s.floor { // the one so far, by what is known now
		copy(high, most)
	}
	s.pivot, s.floor = pivot, floor
	for i := range s.low {
		s.low[i] = max(s.low[i], low[i])
		s.high[i] = max(s.low[i], min(s.high[i], high[i]))
	}
}

func sum(all []int64) int64 {
	n := int64(0)
	for _, v := range all {
		n += v
	}
	return n
}

// page reads the rows from the pivot on, and cuts the page out. It isn't ok where the board has
// changed since, so that they aren't the page's.
func (s *search) page(ctx context.Context, offset, limit, slack, share int) ([]ranking.Standing, bool, error) {
	queries, asked := make([]ranking.AboveQuery, len(s.shards)), make([]int, len(s.shards))
	for i := range queries {
		asked[i] = int(s.high[i]-s.low[i]) + share + 2*slack
		queries[i] = ranking.AboveQuery{Pivots: []ranking.Pivot{s.pivot}, From: asked[i]}
	}
	answers, err := ranking.AboveEach(ctx, s.shards, s.board, s.window, queries)
	if err != nil {
		return nil, false, err
	}
	above, parts := int64(0), make([]*ranking.Part, len(answers))
	for i := range answers {
		above += answers[i].Counts[0]
		parts[i] = &answers[i].Part
	}
	rows, skip := merge(parts), int64(offset)-above
	if skip < 0 || !reaches(parts, rows, int(skip)+limit, asked) {
		return nil, false, nil
	}
	return page(rows, above+1, int(skip), limit), true, nil
}
