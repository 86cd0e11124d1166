package ranking

// The times from which added periods are counted.

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/rules"
)

// sinceField is the prefix of an added period's field among the partitions' origins: since:<period>, or
// since:<board>:<period> if it was added to the list of a board. Every partition's field has a slash, so
// none is mistaken for a period's.
const sinceField = "since:"

// SinceField returns the field among the origins for a key of ledger.State.Since. Its value is Unix ms.
func SinceField(key string) string { return sinceField + key }

// TakeSince removes the fields of periods from the origins, and returns their times as ledger.State.Since,
// nil without any.
func TakeSince(origins map[string]string) (since map[string]int64, err error) {
	for field, text := range origins {
		key, ok := strings.CutPrefix(field, sinceField)
		if !ok || strings.Contains(key, "/") {
			continue
		}
		ms, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, Faultf("the period %s is counted since %q, which is not a time in Unix ms", key, clip(text))
		}
		if since == nil {
			since = map[string]int64{}
		}
		since[key] = ms
		delete(origins, field)
	}
	return since, nil
}

// CountedSince returns the time from which a board's events are counted in a period, in Unix ms; 0 if they
// were counted from the beginning. With board "" it returns that time of the period on all boards.
func CountedSince(st *ledger.State, board, period string) int64 {
	if board == "" {
		return st.Since[period]
	}
	listed, ok := st.Since[ledger.SinceKey(board, period)]
	if !ok {
		listed = st.Since[ledger.SinceKey(rules.AnyBoard, period)]
	}
	return max(listed, st.Since[period])
}

// Incomplete lists the partitions from which a board's window of a period may lack events: those whose
// origin is later than the window's start, Unix ms, or all of them if the period was added later than that
// start.
func Incomplete(st *ledger.State, board, period string, start int64) ([]string, error) {
	since := CountedSince(st, board, period)
	var all []string
	for partition, text := range st.Origins {
		o, err := ledger.ParseOrigin(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", partition, err)
		}
		if start < max(o.Time, since) {
			all = append(all, partition)
		}
	}
	if start < since {
		for partition := range st.Ledger {
			if _, ok := st.Origins[partition]; !ok {
				all = append(all, partition)
			}
		}
	}
	sort.Strings(all)
	return all, nil
}
