package simulate

// Plans of first starts: where partitions are to begin, as it is committed before it is written to Redis.

import (
	"fmt"
	"strings"
)

// planMark begins the metadata of a plan: "standings-start/1 latest", and the origin.
const planMark = "standings-start/"

type planned struct {
	offset   int64
	metadata string
}

// commits takes what a member commits for a partition. The last one counts: a plan, or how far the partition was read.
func (w *world) commits(partition int, offset int64, metadata string) {
	k := &w.kafka
	if !strings.HasPrefix(metadata, planMark) {
		delete(k.planned, partition)
		k.committed[partition], k.trails[partition] = offset, metadata
		w.committedUpTo(partition, offset)
		return
	}
	delete(k.committed, partition)
	delete(k.trails, partition)
	k.planned[partition] = planned{offset, metadata}
	if words := strings.SplitN(metadata, " ", 3); len(words) == 3 {
		w.resolvedAt(partition, words[2])
	}
}

// lastCommitted is the offset that a broker answers with; -1 for none.
func (k *brokers) lastCommitted(partition int) int64 {
	if offset, ok := k.committed[partition]; ok {
		return offset
	}
	if p, ok := k.planned[partition]; ok {
		return p.offset
	}
	return -1
}

func (k *brokers) lastMetadata(partition int) string {
	return k.trails[partition] + k.planned[partition].metadata
}

// resolvedAt is Redis's clock, in ms, as an origin was resolved: a shard that copies it from another one, and a start
// that is repeated, promise nothing of what came after that.
func (w *world) resolvedAt(partition int, origin string) int64 {
	key := fmt.Sprint(partition, " ", origin)
	if _, ok := w.resolved[key]; !ok {
		w.resolved[key] = w.earliest().UnixMilli()
	}
	return w.resolved[key]
}
