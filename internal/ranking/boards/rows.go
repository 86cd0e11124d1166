package boards

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/standings/standings/internal/ranking"
)

// CompareRows compares rows in Redis's order from the highest on: by score, then by member id as bytes,
// both descending.
func CompareRows(a, b ranking.Standing) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(b.Member, a.Member))
}

// comparePivots compares pivots in the order of CompareRows.
func comparePivots(a, b ranking.Pivot) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(b.Member, a.Member))
}

// merge returns the rows of several shards in order.
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

// reaches reports whether the first need merged rows are the first need rows of the board. Shard i was
// asked for asked[i] rows. If it returned that many, and its last row is not below the first need rows, it
// may have more rows that belong among them.
func reaches(parts []*ranking.Part, rows []ranking.Standing, need int, asked []int) bool {
	for i, p := range parts {
		if p.Rows < asked[i] {
			continue // the shard has no more rows
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

// page returns rows [skip, skip+limit) as standings. first is the rank of rows[0].
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

// share returns how many rows to read from each shard so that the first n rows of the board are almost
// always among them. Hashes distribute members evenly; share adds six standard deviations.
func (b *Boards) share(n int) int {
	mean := float64(n) / float64(b.of)
	return min(n, int(math.Ceil(mean+6*math.Sqrt(mean)))+8)
}

func compact(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
