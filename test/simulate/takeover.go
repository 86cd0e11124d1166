package simulate

// Takeovers in the middle of a sweep: whether who goes on with it has less memory, cuts
// otherwise, or can't even hold what is left of it. Each is counted once it has happened.

import (
	"strings"
	"time"
)

const (
	takenOver  = "a sweep goes on at another process"
	lessMemory = takenOver + ", which has less memory"
	otherCuts  = takenOver + ", which cuts another piece"
	readAgain  = takenOver + ", whose memory takes several readings"
)

// inSweep reports whether a piece goes on with a sweep of which others are in.
func (c *call) inSweep() bool {
	if c.kind != "apply" {
		return false
	}
	_, expected, _ := piece(c.command.Args)
	return strings.Contains(expected, "@")
}

// wanted is a piece that somebody has asked for: where it begins.
type wanted struct {
	sweeping
	expected string
}

// sweeping is what a sweep is of: a partition, by its field, in a shard.
type sweeping struct {
	field string
	shard int
}

// cut is what was asked for first from there.
type cut struct {
	next string
	by   *process
}

// asks notes what piece a process wants in, whether it ever comes in or not.
func (w *world) asks(c *call) {
	if !c.inSweep() {
		return
	}
	field, expected, next := piece(c.command.Args)
	if at := (wanted{sweeping{field, c.shard.number}, expected}); w.cuts[at].by == nil {
		w.cuts[at] = cut{next, c.from}
	}
}

// goesOn notes a piece that is in, if it goes on with a sweep of another process.
func (w *world) goesOn(c *call) {
	field, expected, next := piece(c.command.Args)
	of := sweeping{field, c.shard.number}
	before, p := w.sweeps[of], c.from
	w.sweeps[of] = p
	if first := w.cuts[wanted{of, expected}]; first.by != nil && first.by != p && first.next != next {
		w.count(otherCuts)
	}
	if c.inSweep() && before != p {
		w.count(takenOver)
		if before != nil && p.foldMemory < before.foldMemory {
			w.count(lessMemory)
		}
	}
	if delete(p.swept, of); strings.Contains(next, "@") {
		p.swept[of], _, _ = parse(next)
	}
}

// reads notes a reading, and a look at what is committed. Who reads from a sweep's beginning, some of which it has written,
// and hasn't looked at the ledger since, left the rest to this reading.
func (w *world) reads(c *call) {
	switch c.kind {
	case "state", "position":
		clear(c.from.swept)
	case "committed":
		c.from.lookedUp = time.Now()
	case "fetch":
		field := c.from.w.kafka.partitions[c.partition].field()
		again := false
		for _, sh := range w.shards {
			if from, ok := c.from.swept[sweeping{field, sh.number}]; ok && from == c.offset {
				again = true
				delete(c.from.swept, sweeping{field, sh.number})
			}
		}
		if again {
			w.count(readAgain)
		}
	}
}
