package reshard

// Merging of the state of several old shards whose members form one new shard.

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

// laterOrigin returns an origin with the later offset, the later time and the later leader's log of two
// origins: a window that spans both shards is complete if it is complete on each.
func laterOrigin(a, b string) string {
	x, errX := ledger.ParseOrigin(a)
	y, errY := ledger.ParseOrigin(b)
	if errX != nil || errY != nil {
		return cmp.Or(b, a) // one is missing; an unreadable origin is copied as it is
	}
	if y.Log.Epoch > x.Log.Epoch || x.Log == (ledger.Log{}) {
		x.Log = y.Log
	}
	x.Offset, x.Time = max(x.Offset, y.Offset), max(x.Time, y.Time)
	return x.String()
}

// laterSeal merges two seal records of a window. It chooses the record with the higher revision, then the
// later seal, then the later end of its reopening. The events that the window missed while it was final
// differ by shard, as the ledgers do: unless both records name the same ones, the merged record says that
// they are unknown.
func laterSeal(a, b string) string {
	x, errX := ranking.ParseSealRecord(a)
	y, errY := ranking.ParseSealRecord(b)
	switch {
	case errX != nil && errY != nil:
		return max(a, b) // readers report the error
	case errX != nil:
		return b
	case errY != nil:
		return a
	}
	later := cmp.Or(cmp.Compare(x.Revision, y.Revision), x.At.Compare(y.At), x.Reopened.Compare(y.Reopened), cmp.Compare(x.Why, y.Why))
	if later < 0 {
		x, y = y, x
	}
	if !slices.Equal(x.Passed, y.Passed) {
		x.Passed = []ranking.Passed{ranking.Unsaid(lastOf(x.Passed, y.Passed))}
	}
	return x.Text()
}

// lastOf returns the latest end of the given intervals.
func lastOf(all ...[]ranking.Passed) (last time.Time) {
	for _, passed := range all {
		for _, p := range passed {
			if p.To.After(last) {
				last = p.To
			}
		}
	}
	return last
}

// laterTime returns the later of two times in Unix ms, which may be before 1970.
func laterTime(a, b string) string {
	x, err1 := strconv.ParseInt(a, 10, 64)
	y, err2 := strconv.ParseInt(b, 10, 64)
	if err2 != nil || err1 == nil && x > y {
		return cmp.Or(a, b)
	}
	return b
}
