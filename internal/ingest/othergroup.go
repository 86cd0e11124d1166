package ingest

// A second group under the same prefix: each event counts once all the same, by the one
// ledger, but either finds it moved by the other, and counts a part. It can't be refused,
// since a group that was renamed a moment ago looks the same; so it is logged.
//
// It is known by the line that a worker's own replaces. Another owner's of the same group is
// lawful: a rebalance. One of another group may be what a group that was renamed left behind:
// once. Who finds one again in the same partition, within the time of three lines, shares it
// with somebody who writes.

import (
	"encoding/json"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/ledger/workers"
	"github.com/standings/standings/internal/retry"
)

// otherGroupLogEvery is how often a second group is logged.
const otherGroupLogEvery = time.Minute

// otherGroups are the lines of other groups that were found.
type otherGroups struct {
	mu     sync.Mutex           // guards what is below
	found  map[string]time.Time // by partition: when last
	logged retry.LogLimit
}

// see looks at the line that a worker's own has replaced, empty where there was none.
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
