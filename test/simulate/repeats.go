package simulate

// This file adds producers that send an event twice, with event.duplicates. Which events are duplicates is
// a function of the log, for every reader and from every start.

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"

	starts "github.com/standings/standings/internal/ingest/start"
	"github.com/standings/standings/test/oracle"
)

const (
	repeatsFound  = "repeats that count as duplicates"
	repeatsBefore = "repeats of what was before the start"
)

// repeatsFrom is the seed after which worlds have repeats, and some of them names.
const repeatsFrom = int64(1) << 40

// repeats gives events ids, many of which are equal.
func (p *plan) repeats() {
	d := &drawer{Rand: rand.New(rand.NewPCG(uint64(p.seed), 0x1d5))}
	s := &p.setup
	s.Duplicates = int64(d.pick(1, 5, 30, 30, 200))
	// Not every process knows deleted records, so with them the duplicates found would depend on the start.
	s.Beheaded = 0
	p.events = slices.DeleteFunc(p.events, func(f fault) bool { return f.kind == truncate || f.kind == gapOpens })
	s.MaxPoints = 99_999_999 // overflow is tested in other worlds
	ids := d.pick(1, 2, 6)
	named := []byte(`{"user_id":`)
	for i := range p.sendings {
		all := p.sendings[i].records
		for j := range all {
			switch {
			case !bytes.HasPrefix(all[j].value, named), d.IntN(6) == 0:
			case j > 0 && d.IntN(4) == 0: // an exact repeat
				before := all[d.IntN(j)]
				all[j].value, all[j].headers = before.value, before.headers
			default:
				all[j].value = fmt.Appendf(nil, `{"event_id":"e%d",%s`, d.IntN(ids), all[j].value[1:])
			}
		}
	}
}

// before adds to an oracle the records before the start, which do not count: their repeats are duplicates
// nevertheless.
func (w *world) before(o referee, counts func(partition int, r *stored) bool) {
	if w.setup.Duplicates == 0 {
		return
	}
	for _, p := range w.kafka.partitions {
		p.visible(0, func(r *stored) {
			if !counts(p.id, r) {
				o.Before(recordOf(p.id, r, false))
			}
		})
	}
}

// noteRepeats counts the duplicates.
func (w *world) noteRepeats(c oracle.Counts) {
	if w.setup.Duplicates == 0 {
		return
	}
	w.counts[repeatsFound] += int(c.Duplicates)
	if w.setup.Start == starts.FromLatest || w.setup.Start == starts.FromTime {
		w.count(repeatsBefore)
	}
}
