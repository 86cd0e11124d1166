package simulate

// This file detects takeovers in the middle of a sweep: the successor may have less memory, cut other
// pieces, or be unable to hold the rest of the sweep. Each case is counted once it has happened.

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

// inSweep reports whether a piece continues a sweep.
func (c *call) inSweep() bool {
	if c.kind != "apply" {
		return false
	}
	_, expected, _ := piece(c.command.Args)
	return strings.Contains(expected, "@")
}

// wanted identifies a requested piece by its start.
type wanted struct {
	sweeping
	expected string
}

// sweeping identifies a sweep: by the partition's field, and the shard.
type sweeping struct {
	field string
	shard int
}

// cut is the first request for a piece with this start.
type cut struct {
	next string
	by   *process
}

// asks records the piece that a process requests, whether it is ever applied or not.
func (w *world) asks(c *call) {
	if !c.inSweep() {
		return
	}
	field, expected, next := piece(c.command.Args)
	if at := (wanted{sweeping{field, c.shard.number}, expected}); w.cuts[at].by == nil {
		w.cuts[at] = cut{next, c.from}
	}
}

// goesOn records an applied piece, and counts it if it continues another process's sweep.
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

// reads records reads. A process that reads again from the start of a sweep that it has partly written,
// without having checked the ledger since, had left the rest to a further pass.
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
