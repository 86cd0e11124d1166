package boards

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/standings/standings/internal/ranking"
)

// row is a standing, and what it is ordered by.
type row struct {
	ranking.Standing
	score float64
}

// compareRows orders as Redis does from the highest on: by score, then member id as bytes, both
// descending.
func compareRows(a, b row) int {
	return cmp.Or(cmp.Compare(b.score, a.score), strings.Compare(b.Member, a.Member))
}

func pivotOf(p *ranking.Part, i int) ranking.Pivot {
	return ranking.Pivot{Score: p.Scores[i], Member: p.Standings[i].Member}
}

// comparePivots orders as compareRows does.
func comparePivots(a, b ranking.Pivot) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(b.Member, a.Member))
}

// merge is the rows of several shards in order.
func merge(parts []*ranking.Part) []row {
	n := 0
	for _, p := range parts {
		n += p.Rows
	}
	all := make([]row, 0, n)
	for _, p := range parts {
		for i := range p.Rows {
			all = append(all, row{p.Standings[i], p.Scores[i]})
		}
	}
	slices.SortFunc(all, compareRows)
	return all
}

// reaches reports whether the first need of the merged rows are the first of all, where each
// shard was asked for as many as asked says: one that gave as many, and whose last isn't below
// them, may have more that belong among them.
func reaches(parts []*ranking.Part, rows []row, need int, asked []int) bool {
	for i, p := range parts {
		if p.Rows < asked[i] {
			continue // it has no more
		}
		if len(rows) < need || p.Rows == 0 {
			return false
		}
		if comparePivots(pivotOf(p, p.Rows-1), ranking.Pivot{Score: rows[need-1].score, Member: rows[need-1].Member}) < 0 {
			return false
		}
	}
	return true
}

// page is rows [skip, skip+limit) as standings, where the first row has a rank.
func page(rows []row, first int64, skip, limit int) []ranking.Standing {
	if skip >= len(rows) || limit == 0 {
		return nil
	}
	some := rows[skip:min(len(rows), skip+limit)]
	all := make([]ranking.Standing, len(some))
	for i, r := range some {
		all[i] = r.Standing
		all[i].Rank = first + int64(skip+i)
	}
	return all
}

// share is how many rows to ask each shard for so that the first n of all are almost always
// among them: hashes deal members out evenly, and six standard deviations are on top.
func (b *Boards) share(n int) int {
	mean := float64(n) / float64(b.of)
	return min(n, int(math.Ceil(mean+6*math.Sqrt(mean)))+8)
}

func compact(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
