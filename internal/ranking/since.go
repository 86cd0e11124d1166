package ranking

// The times from which added periods are counted.

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/standings/standings/internal/ledger"
)

// sinceField is the prefix of an added period's field among the partitions' origins: since:<period>.
// Every partition's field has a slash, so none is mistaken for a period's.
const sinceField = "since:"

// SinceField is a period's field among the origins. Its value is Unix ms.
func SinceField(period string) string { return sinceField + period }

// TakeSince removes the fields of periods from the origins, and returns their times by period, nil without
// any.
func TakeSince(origins map[string]string) (since map[string]int64, err error) {
	for field, text := range origins {
		period, ok := strings.CutPrefix(field, sinceField)
		if !ok || strings.Contains(period, "/") {
			continue
		}
		ms, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, Faultf("the period %s is counted since %q, which is not a time in Unix ms", period, clip(text))
		}
		if since == nil {
			since = map[string]int64{}
		}
		since[period] = ms
		delete(origins, field)
	}
	return since, nil
}

// Incomplete lists the partitions whose events a window of a period may lack: those whose origin
// lies after the window's start, Unix ms, and all of them if the period was added too late for it.
func Incomplete(st *ledger.State, period string, start int64) ([]string, error) {
	since := st.Since[period]
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
