package boards

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/standings/standings/internal/ranking"
)

// CompareRows orders as Redis does from the highest on: by score, then member id as bytes, both
// descending.
func CompareRows(a, b ranking.Standing) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(b.Member, a.Member))
}

// comparePivots orders as CompareRows does.
func comparePivots(a, b ranking.Pivot) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(b.Member, a.Member))
}

// merge is the rows of several shards in order.
func merge(parts []*ranking.Part) []ranking.Standing {
	n := 0
	for _, p := range parts {
		n += p.Rows
	}
	all := make([]ranking.Standing, 0, n)
	for _, p := range parts {
		all = append(all, p.Standings[:p.Rows]...)
	}
	slices.SortFunc(all, CompareRows)
	return all
}

// reaches reports whether the first need of the merged rows are the first of all, where each
// shard was asked for as many as asked says: one that gave as many, and whose last isn't below
// them, may have more that belong among them.
func reaches(parts []*ranking.Part, rows []ranking.Standing, need int, asked []int) bool {
	for i, p := range parts {
		if p.Rows < asked[i] {
			continue // it has no more
		}
		if len(rows) < need || p.Rows == 0 {
			return false
		}
		if CompareRows(p.Standings[p.Rows-1], rows[need-1]) < 0 {
			return false
		}
	}
	return true
}

// page is rows [skip, skip+limit) as standings, where the first row has a rank.
func page(rows []ranking.Standing, first int64, skip, limit int) []ranking.Standing {
	if skip >= len(rows) || limit == 0 {
		return nil
	}
	some := rows[skip:min(len(rows), skip+limit)]
	for i := range some {
		some[i].Rank = first + int64(skip+i)
	}
	return some
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
