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
	by       *process
	written  bool // to a shard
}

func (p planned) origin() string {
	if words := strings.SplitN(p.metadata, " ", 3); len(words) == 3 {
		return words[2]
	}
	return ""
}

// commits takes what a member commits for a partition. The last one counts: a plan, or how far the partition was read. A
// process that has written a start to a shard does not plan a later one.
func (w *world) commits(by *process, partition int, offset int64, metadata string) {
	k := &w.kafka
	if !strings.HasPrefix(metadata, planMark) {
		delete(k.planned, partition)
		k.committed[partition], k.trails[partition] = offset, metadata
		w.committedUpTo(partition, offset)
		return
	}
	delete(k.committed, partition)
	delete(k.trails, partition)
	was := k.planned[partition]
	if was.written && was.by == by && was.offset < offset && was.offset >= k.partitions[partition].start {
		w.failf("partition %d was to begin at offset %d, and is to begin at %d now", partition, was.offset, offset)
	}
	now := planned{offset: offset, metadata: metadata, by: by}
	k.planned[partition] = now
	w.resolvedAt(partition, now.origin())
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

// writes notes that a planned start was written to a shard.
func (k *brokers) writes(partition int, origin string) {
	if p, ok := k.planned[partition]; ok && p.origin() == origin {
		p.written = true
		k.planned[partition] = p
	}
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
