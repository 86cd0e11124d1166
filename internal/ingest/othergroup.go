package ingest

// This file detects a second group that writes under the same prefix. Each event still counts once, since there
// is one ledger, but each group finds the ledger moved by the other and counts a part of the events. The
// consumer can't refuse to start because of this: a group that was renamed a moment ago looks the same. So it
// logs a warning.
//
// A worker detects the other group by the status line that its own line replaces. A line of another owner in
// the same group is normal after a rebalance. A line of another group may be left over from before a rename,
// but only once. A worker that finds such a line again in the same partition, within workers.StaleAfter (the
// time of three lines), shares the partition with a group that still writes.

import (
	"encoding/json"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/ledger/workers"
	"github.com/standings/standings/internal/retry"
)

// otherGroupLogEvery is the minimum interval between two log lines about a second group.
const otherGroupLogEvery = time.Minute

// otherGroups holds the partitions in which lines of other groups were found.
type otherGroups struct {
	mu     sync.Mutex           // guards found and logged
	found  map[string]time.Time // by partition: the last time
	logged retry.LogLimit
}

// see checks the line that a worker's own line has replaced; replaced is empty if there was no line.
func (o *otherGroups) see(field, group, replaced string, log *zap.Logger) {
	var l workers.Line
	if json.Unmarshal([]byte(replaced), &l) != nil || l.Group == "" || l.Group == group {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	before, again := o.found[field]
	if o.found == nil {
		o.found = map[string]time.Time{}
	}
	o.found[field] = time.Now()
	if !again || time.Since(before) > workers.StaleAfter || !o.logged.Due(otherGroupLogEvery) {
		return
	}
	log.Warn("another group counts under this prefix: each event counts once all the same, and either group finds the ledger moved by the other",
		zap.String("group", group), zap.String("other_group", l.Group), zap.String("other_owner", l.Owner), zap.String("partition", field),
		zap.String("remedy", "unless this group has just been renamed, stop one of the two, or give it a redis.prefix of its own"))
}
