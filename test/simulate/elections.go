package simulate

// This file makes unclean elections (KIP-320): a new leader lacks the newest records of a partition, which the
// boards already include. Producers then write other records at their offsets and beyond the ledger's
// position. In order:
//
//	the partition                        the consumer
//	epoch 1: [0, 150)                    counts up to 150
//	epoch 2 begins at 50, after an
//	election, and goes on to 200
//	                                     reads at 150, or starts there: halts as truncated
//	                                     is rebuilt, and counts [0, 200)
//
// The election happens when everything is counted, while processes run or while none runs. All records of
// epoch 2 have later times than those of epoch 1. So what a start or a trail contains about the times before
// an offset above 50 is wrong, and a partition that began above 50 must begin at 50.

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	starts "github.com/standings/standings/internal/ingest/start"

	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/trail"
)

// electionsFrom is the first seed of the worlds that end with an unclean election.
const electionsFrom = int64(1) << 45

const (
	electedRunning = "an unclean election while processes run"
	electedStopped = "an unclean election while no process runs"
	electionMended = "the operator rebuilds what an unclean election lost"
)

// firstEpoch is the epoch of every leader until an election loses records.
const firstEpoch = 1

// elections adds an election to the plan. The logs are complete, so that a rebuild restores all standings.
// There are no names, because a name from a lost event would remain.
func (p *plan) elections() {
	s := &p.setup
	if s.Disorder || s.MaxWindows > 0 || s.Beheaded > 0 || s.Names {
		return
	}
	s.Election = true
	s.Start, s.MaxPoints = starts.FromEarliest, 99_999_999
	p.events = slices.DeleteFunc(p.events, func(f fault) bool {
		return slices.Contains([]string{truncate, gapOpens, wipe, evict}, f.kind)
	})
}

// election is an unclean election of a partition that lost records.
type election struct {
	epoch int32
	at    int64 // offset
	count int64 // number of lost offsets
}

// epoch returns the leader's epoch.
func (p *partition) epoch() int32 {
	if n := len(p.elections); n > 0 {
		return p.elections[n-1].epoch
	}
	return firstEpoch
}

// endOf returns where an epoch ends, as the leader knows it; -1 if it does not.
func (p *partition) endOf(epoch int32) int64 {
	switch {
	case epoch > p.epoch():
		return -1
	case epoch == p.epoch():
		return p.end
	}
	for _, e := range p.elections {
		if e.epoch > epoch {
			return e.at
		}
	}
	return p.end
}

// stamp writes the leader's epoch into a batch; the checksum does not cover it.
func (p *partition) stamp(b *batch) {
	const epochAt = 12
	binary.BigEndian.PutUint32(b.bytes[epochAt:], uint32(p.epoch()))
}

// elects executes the election if the world has one and it has not happened. It reports whether the world
// must continue.
func (w *world) elects() bool {
	if !w.setup.Election || w.elected != nil {
		return false
	}
	n := int(w.plan.seed % 1000)
	for i := range w.kafka.partitions {
		p := w.kafka.partitions[(n+i)%len(w.kafka.partitions)]
		if at := p.loses(n); at >= 0 {
			w.elect(p, at, n/10%2 == 1)
			return true
		}
	}
	return false
}

// loses returns the index of the first batch that an election may lose, or -1. The election splits no
// transaction, and loses at least one event that counts.
func (p *partition) loses(n int) int {
	var all []int
	for i, b := range p.batches {
		cut := slices.ContainsFunc(p.transactions, func(t *transaction) bool { return t.first < b.base && t.last >= b.base })
		if i > 0 && !cut && b.base > p.start && slices.ContainsFunc(p.batches[i:], func(b *batch) bool {
			return (b.of == nil || !b.of.aborted) && slices.ContainsFunc(b.records, func(r stored) bool { return r.value != nil && r.time > 0 })
		}) {
			all = append(all, i)
		}
	}
	if len(all) == 0 {
		return -1
	}
	return all[n/2%len(all)]
}

func (w *world) elect(p *partition, first int, stopped bool) {
	kind := electedRunning
	if stopped {
		kind = electedStopped
		for _, c := range w.alive() {
			w.tellf("process %d is told to stop", c.id)
			c.stopped = true
			c.end()
		}
		for steps := 0; w.failed == "" && slices.ContainsFunc(w.processes, func(c *process) bool { return !c.dead && !c.over() }); steps++ {
			if w.advance(); steps > 20_000 {
				w.failf("processes don't end before the election")
			}
		}
	}
	cut, end := p.batches[first].base, p.end
	at := min(p.latest+1, w.now().UnixMilli()) // the bounds on times before an offset are no longer true
	p.batches = p.batches[:first]
	p.transactions = slices.DeleteFunc(p.transactions, func(t *transaction) bool { return t.first >= cut })
	p.elections = append(p.elections, election{p.epoch() + 1, cut, end - cut})
	p.end, p.gap = cut, 0
	w.kafka.letters = slices.DeleteFunc(w.kafka.letters, func(l letter) bool { return l.partition == p.id && l.offset >= cut })
	w.unknown, w.elected = true, p
	for p.end < end+5 {
		s := sending{partition: p.id}
		for i := range 8 {
			s.records = append(s.records, record{time: at, value: fmt.Appendf(nil, `{"user_id":"elected%d","points":3}`, i%3)})
		}
		w.send(&s)
	}
	w.tellf("an unclean election: partition %d has lost the offsets from %d to %d, and has others up to %d", p.id, cut, end-1, p.end-1)
	w.count(kind)
	if stopped {
		w.launch(w.setup.Processes[0])
	}
}

// over reports whether the process has ended.
func (p *process) over() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// isElected reports whether a record was written after an election. Until the boards are rebuilt no such
// record counts, and the partition is shown as halted.
func (w *world) isElected(p *partition, r *stored) bool {
	return p == w.elected && r.offset >= p.elections[len(p.elections)-1].at
}

// beginsElected makes a shard count from the offset of the election, once its boards are rebuilt.
func (sh *shard) beginsElected() {
	if p := sh.w.elected; p != nil && p.mended {
		sh.starts[p.id] = min(sh.starts[p.id], p.elections[len(p.elections)-1].at)
	}
}

// checkTrails checks that the committed bounds on record times hold for the records written after the
// election.
func (w *world) checkTrails() {
	p := w.elected
	if p == nil {
		return
	}
	known, err := trail.Parse(w.kafka.trails[p.id])
	if err != nil {
		w.failf("the trail of partition %d: %v", p.id, err)
	}
	p.visible(0, func(r *stored) {
		if latest, ok := known.Latest(r.offset + 1); ok && w.isElected(p, r) && r.time > latest {
			w.failf("the record at offset %d of partition %d has the time %d, and the trail says that none up to there is later than %d: %s", r.offset, p.id, r.time, latest, &known)
		}
	})
}

// rebuildsElected rebuilds the boards as the halt demands; the halt must name the epoch and the offset. It
// returns false if there was no election or it is dealt with.
func (w *world) rebuildsElected(halts map[int]string) bool {
	p := w.elected
	if p == nil || p.mended {
		return false
	}
	e := p.elections[len(p.elections)-1]
	what := w.lines()[p.field()].What
	if halts[p.id] != health.HaltTruncated || !strings.Contains(what, fmt.Sprintf("the epoch %d of its leader ends at %d", e.epoch-1, e.at)) {
		w.failf("partition %d has lost the offsets from %d on, and is %q: %s", p.id, e.at, halts[p.id], what)
		return false
	}
	p.mended = true
	w.tellf("the operator has the boards rebuilt")
	w.count(electionMended)
	w.rebuild(w.setup.Processes[0])
	return true
}
