package simulate

// This file handles plans of first starts: where partitions will start, as committed to Kafka before it is
// written to Redis.

import (
	"fmt"
	"strings"
)

// planMark is the start of the metadata of a plan: "standings-start/1 latest", followed by the origin.
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

// commits stores what a member commits for a partition. The last commit counts: a plan, or the offset up to
// which the partition was read. A process that has written a start to a shard does not plan a later one.
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

// lastCommitted returns the offset that a broker reports; -1 if there is none.
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

// writes records that a planned start was written to a shard.
func (k *brokers) writes(partition int, origin string) {
	if p, ok := k.planned[partition]; ok && p.origin() == origin {
		p.written = true
		k.planned[partition] = p
	}
}

// resolvedAt returns Redis's clock, in ms, when an origin was resolved. A shard that copies the origin from
// another one, and a repeated start, guarantee nothing for later events.
func (w *world) resolvedAt(partition int, origin string) int64 {
	key := fmt.Sprint(partition, " ", origin)
	if _, ok := w.resolved[key]; !ok {
		w.resolved[key] = w.earliest().UnixMilli()
	}
	return w.resolved[key]
}
