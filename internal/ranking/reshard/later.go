package reshard

// Where the members of several shards make up one, what that is to keep of what each of them has.

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

// laterOrigin returns the later offset and the later time of two origins, and the log of the later leader: a window of
// both shards is complete if it is complete on each.
func laterOrigin(a, b string) string {
	x, errX := ledger.ParseOrigin(a)
	y, errY := ledger.ParseOrigin(b)
	if errX != nil || errY != nil {
		return cmp.Or(b, a) // one alone; what can't be read stays so
	}
	if y.Log.Epoch > x.Log.Epoch || x.Log == (ledger.Log{}) {
		x.Log = y.Log
	}
	x.Offset, x.Time = max(x.Offset, y.Offset), max(x.Time, y.Time)
	return x.String()
}

// laterSeal is, of two records of a window that was ever sealed, the one of the higher revision, of one
// revision that of the later instant, and of one instant that which was reopened, until later. What had
// passed the window by differs by shard, as their ledgers do: unless both say the same, nothing says
// which events those are of the members of either.
func laterSeal(a, b string) string {
	x, errX := ranking.ParseSealRecord(a)
	y, errY := ranking.ParseSealRecord(b)
	switch {
	case errX != nil && errY != nil:
		return max(a, b) // whoever reads it says so
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

// lastOf is the last end of what passed a window by.
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

// laterTime is the later of two times in Unix ms, which may be before 1970.
func laterTime(a, b string) string {
	x, err1 := strconv.ParseInt(a, 10, 64)
	y, err2 := strconv.ParseInt(b, 10, 64)
	if err2 != nil || err1 == nil && x > y {
		return cmp.Or(a, b)
	}
	return b
}
