package simulate

// This file compares the starts written to a shard with the configuration and with the other shards.

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	starts "github.com/standings/standings/internal/ingest/start"
)

// begun compares a start that was written with the configuration.
func (sh *shard) begun(c *call) {
	w, args := sh.w, arguments(c.command.Args)
	var said []string
	var first []int
	for i := 2; i+4 < len(args); i += 5 {
		field, found, position := args[i], args[i+1], args[i+2]
		p := w.idOf(field)
		from, _, _ := parse(position)
		said = append(said, fmt.Sprintf("%d at %s", p, position))
		sh.furthest[p], sh.began[p] = max(sh.furthest[p], from), max(sh.began[p], from)
		if found != "" && found != "beside others" {
			sh.skips(p, found, position, w.resolvedAt(p, args[i+3]))
			continue
		}
		if found != "" && from > 0 && (!w.setup.Continue || from > w.kafka.partitions[p].start) {
			w.failf("partition %d was added, and begins at offset %d (on_gap: continue is %v)", p, from, w.setup.Continue)
		}
		first = append(first, p)
		sh.starts[p], sh.looked[p] = from, w.resolvedAt(p, args[i+3])
		w.kafka.writes(p, args[i+3])
		sh.heads[p] = math.MaxInt64
		if refills(args) || w.setup.Start == starts.FromWindow || w.setup.Start == starts.FromTime {
			sh.heads[p] = w.kafka.partitions[p].start
		}
	}
	w.tellf("starts are written%s: %s", sh.named(), strings.Join(said, ", "))
	of, there, fresh := w.kafka.partitions[w.idOf(args[2])].topic, 0, ""
	for p := range sh.ledger() {
		if w.kafka.partitions[p].topic == of {
			there++
		}
	}
	alone := len(first) == there // the ledger had nothing of the topic before
	if alone {
		fresh = of
	}
	sh.originsRise(fresh)
	sh.checkWhole()
	if n := w.setup.partitions(of); alone && len(first) < n {
		w.failf("the start of %d partitions was resolved, and the topic has %d or more: they would start at different times", len(first), n)
	}
	for _, p := range first {
		sh.startsWell(p, sh.starts[p], !alone)
	}
	switch {
	case !alone:
	case (w.belated || c.from.lookedUp.Before(sh.on.changed)) && !refills(args):
		// This first start was in flight when Redis was lost, or its sender had looked up the committed
		// offsets before. The events that it leaves out were left out before, too, and its sender knew
		// nothing that had to be refilled.
		sh.known = nil
	default:
		for _, p := range first {
			sh.notBefore(p, sh.starts[p])
			if sh.known[p] > 0 {
				sh.known[p] = min(sh.known[p], w.refillsTo(p))
			}
		}
		sh.refilled(of, c.from.has)
		if len(w.shards) > 1 && w.ofTopic(w.kafka.committed, of) > 0 && sh.isBehind(first) && !refills(args) {
			w.failf("events of %s had counted%s, which begins again, and nothing says that it is refilled", of, sh.named())
		}
	}
}

// isBehind reports whether a partition starts before an offset that a piece had reached, as far as its refill can know.
func (sh *shard) isBehind(first []int) bool {
	return slices.ContainsFunc(first, func(p int) bool { return sh.starts[p] < min(sh.moved[p], sh.w.refillsTo(p)) })
}

// refillsTo returns the offset up to which a refill goes at most: if the leader doesn't know the log's end, the end as it
// knew it, or the committed offset.
func (w *world) refillsTo(p int) int64 {
	if log := w.kafka.partitions[p]; log.misled > 0 {
		return max(log.seen, w.kafka.committed[p])
	}
	return math.MaxInt64
}

// notBefore checks that a shard counts no event from before the start of the other shards. The check is
// skipped if another shard changed recently, because the process that wrote the start may have read it
// earlier.
func (sh *shard) notBefore(p int, at int64) {
	const ago = 30 * time.Second
	for _, o := range sh.w.shards {
		if o != sh && !o.on.changed.IsZero() && time.Since(o.on.changed) < ago && o.on != sh.on {
			return
		}
	}
	if bound, ok := sh.othersBegan(p); ok && at < bound {
		sh.w.failf("partition %d begins at offset %d%s, and the other shards began at %d", p, at, sh.named(), bound)
	}
}

// othersBegan returns the lowest offset from which another shard has a partition; false if none has it.
func (sh *shard) othersBegan(p int) (int64, bool) {
	lowest := int64(math.MaxInt64)
	for _, o := range sh.w.shards {
		if o != sh && o.ledger()[p] != "" {
			lowest = min(lowest, o.starts[p])
		}
	}
	return lowest, lowest < math.MaxInt64
}

// refills reports whether a start refills a lost Redis.
func refills(args []string) bool {
	for i := 2; i+4 < len(args); i += 5 {
		if args[i+4] != "" {
			return true
		}
	}
	return false
}

// skips records the events that a partition skips between two positions; in a sweep, only those of members
// that the sweep had not reached. looked is the time in ms, by Redis's clock, at which the process looked
// at the log.
func (sh *shard) skips(partition int, found, position string, looked int64) {
	w := sh.w
	from, to, hash := parse(found)
	start, _, at := parse(position)
	// if gaps are skipped, the log's start only rises
	if log := w.kafka.partitions[partition]; !w.setup.Continue || from >= log.start || start > log.start {
		w.failf("partition %d goes over a gap from %s to %s, and its log begins at offset %d (on_gap: continue is %v)", partition, found, position, log.start, w.setup.Continue)
		return
	}
	w.count("events are lost in a gap, as on_gap says")
	sh.lost = append(sh.lost, gone{partition, from, min(max(to, from), start), hash, looked})
	if start > to {
		sh.lost = append(sh.lost, gone{partition, to, start, 0, looked})
	} else if start < to && at != hash {
		w.failf("partition %d goes over a gap from %s to %s: of another hash", partition, found, position)
	}
}
