package boards

// The search for a page far down a board: it finds how many of the members above the page each shard has,
// without reading them.
//
// The search looks for a pivot: a row with at most as many rows above it as the page has, and only a few
// fewer. In each round every shard returns samples, rows evenly spread over those that may be the first row
// of its page. The rank of a sample in its own shard is known. In every other shard the sample lies between
// two samples of that shard, which gives a lower and an upper bound of the rows above it.
//
//	P, the current pivot       rows above it are above the page
//	│   ·   ·   x   ·   ·      samples: x is the lowest with at most offset rows above it
//	Q, the floor               rows at or below it are not above the page
//
// The lowest sample with at most offset rows above it is the next P; the highest with at least offset is
// the next Q. With 64 samples per shard each round reduces the remaining rows about thirty times. The last
// call reads the rows from P on together with the number of rows above P, so the page is correct for that
// instant even if the board changed during the search.

import (
	"context"
	"errors"
	"slices"

	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
)

const (
	samplesInAll = 1024 // per round, over all shards: two milliseconds of one server that has them all
	leastSamples = 16   // per shard
	mostSamples  = 128
	nearEnough   = 1000 // most rows that are read in addition to the page's
	mostRounds   = 40   // a board that does not change never needs as many
	mostSearches = 6
)

// errRestless is transient: another try may succeed.
var errRestless = errors.New("the board changes faster than a page this far down can be found in it")

// farDown reads a page by a search.
func (b *Boards) farDown(ctx context.Context, query *ranking.Query, offset, limit int) (ranking.Board, error) {
	board, w, q := query.Board, query.Window, *query
	q.Rows, q.Ties = ranking.Rows{}, false
	// The search aims slightly above the page, and reads a few more rows than the page has, since members
	// rise and fall during the search.
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

// search is a search for the first row of a page.
type search struct {
	*Boards
	board  string
	window periods.Window
	target int64 // number of rows above the page
	// rows reads rows of each shard by rank.
	rows func(ctx context.Context, ranks [][]int64) ([][]ranking.Pivot, error)

	// For each shard: at least low and at most high of its rows are above the page. Rows before low are
	// above the pivot; rows from high on are at or below the floor.
	low, high []int64
	pivot     ranking.Pivot
	floor     *ranking.Pivot // nil until one is found
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

// left returns the number of rows that may or may not be above the page.
func (s *search) left() int64 {
	n := int64(0)
	for i := range s.low {
		n += s.high[i] - s.low[i]
	}
	return n
}

// run narrows the search until the remaining rows can be read.
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

// spread returns at most most ranks, evenly spread from low to high.
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

// narrow moves the pivot and the floor by the samples of all shards.
func (s *search) narrow(all []sample) {
	slices.SortFunc(all, func(a, b sample) int { return comparePivots(a.Pivot, b.Pivot) })
	// Bounds of the number of rows of each shard above the current sample.
	least, most := slices.Clone(s.low), slices.Clone(s.high)
	for i := len(all) - 1; i >= 0; i-- { // ends at the rank of each shard's first sample
		most[all[i].shard] = all[i].rank
	}
	next := make([]int64, len(all)) // the rank of the same shard's next sample
	after := slices.Clone(s.high)
	for i := len(all) - 1; i >= 0; i-- {
		next[i] = after[all[i].shard]
		after[all[i].shard] = all[i].rank
	}
	low, high := slices.Clone(s.low), slices.Clone(s.high)
	pivot, floor := s.pivot, s.floor
	reached := false // the loop has reached the current pivot
	for i, x := range all {
		if floor != nil && comparePivots(x.Pivot, *floor) >= 0 {
			break
		}
		if !reached && comparePivots(x.Pivot, pivot) >= 0 {
			reached = true
			copy(low, least)
		}
		least[x.shard], most[x.shard] = x.rank, x.rank // the rank in its own shard is exact
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
	if !reached { // no sample is below the pivot
		copy(low, least)
	}
	if floor == s.floor { // the floor is unchanged, with tighter bounds
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

// page reads the rows from the pivot on, and returns those of the page. ok is false if the board has
// changed so much since the search that the rows read do not contain the page.
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
