package simulate

// Takeovers in the middle of a sweep: whether who goes on with it has less memory, cuts
// otherwise, or can't even hold what is left of it. Each is counted once it has happened.

import (
	"fmt"
	"strings"
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
type wanted struct{ field, expected string }

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
	if at := (wanted{field, expected}); w.cuts[at].by == nil {
		w.cuts[at] = cut{next, c.from}
	}
}

// goesOn notes a piece that is in, if it goes on with a sweep of another process.
func (w *world) goesOn(c *call) {
	field, expected, next := piece(c.command.Args)
	before, p := w.sweeps[field], c.from
	w.sweeps[field] = p
	if first := w.cuts[wanted{field, expected}]; first.by != nil && first.by != p && first.next != next {
		w.count(otherCuts)
	}
	if c.inSweep() && before != p {
		w.count(takenOver)
		if before != nil && p.foldMemory < before.foldMemory {
			w.count(lessMemory)
		}
	}
	if delete(p.swept, field); strings.Contains(next, "@") {
		p.swept[field], _, _ = parse(next)
	}
}

// reads notes a reading. Who reads from a sweep's beginning, some of which it has written,
// and hasn't looked at the ledger since, left the rest to this reading.
func (w *world) reads(c *call) {
	switch c.kind {
	case "state", "position":
		clear(c.from.swept)
	case "fetch":
		field := fmt.Sprintf("%s/%d", topic, c.partition)
		if from, ok := c.from.swept[field]; ok && from == c.offset {
			w.count(readAgain)
			delete(c.from.swept, field)
		}
	}
}
