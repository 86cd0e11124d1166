package simulate

// This file makes records whose times go back. The producer sets a record's time: a producer that was offline
// sends old times, and some records have none. So the first record that a log still has does not tell
// the times of the deleted ones. Boards that are shown as complete are compared with all records that
// ever existed.

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/test/oracle"
)

const (
	beheaded = "a log whose head was gone before anybody came"
	timeless = "records without a time"
	goesBack = "records whose times go back"
	lacking  = "windows that lack events, and are shown as incomplete"
)

var occurredAt = regexp.MustCompile(`"occurred_at":\d+`)

// disorder makes records old at any place, or removes the times of all records.
func (d *drawer) disorder(p *plan) {
	p.setup.Disorder = true
	often := d.pick(4, 12)
	none := d.IntN(4) == 0
	for i := range p.sendings {
		for j := range p.sendings[i].records {
			r := &p.sendings[i].records[j]
			switch {
			case d.IntN(often) == 0:
				r.time -= d.Int64N(d.back().Milliseconds())
			case none && d.IntN(10) == 0:
				r.time = int64(d.pick(0, -1))
				continue // only the event's own time is left
			default:
				continue
			}
			at := r.time - d.Int64N(3_600_000)
			r.value = occurredAt.ReplaceAll(r.value, fmt.Appendf(nil, `"occurred_at":%d`, at))
			if len(r.value) == 0 && r.key != nil {
				r.value = nil // a tombstone
			}
		}
	}
	if none {
		p.untimed()
	}
	if d.IntN(2) == 0 {
		p.setup.Beheaded = 1 + d.IntN(40)
	}
	// The head of a log is deleted, and Redis, which knew of that, is lost.
	if d.IntN(2) == 0 {
		at := 20 + d.IntN(100)
		p.events = append(p.events,
			fault{at: at, kind: pick(d, truncate, truncate, gapOpens), n: d.IntN(1 << 16)},
			fault{at: at + d.IntN(40), kind: pick(d, wipe, wipe, rebuilds), n: d.IntN(1 << 16)})
	}
}

// untimed removes the times of all records. In a log of both kinds, a look-up by time skips records without
// a time, so a read from the offset that it finds misses them (docs/kafka-problems.md).
func (p *plan) untimed() {
	for _, s := range p.sendings {
		for j := range s.records {
			s.records[j].time = int64(-(j % 2))
		}
	}
}

func (d *drawer) back() time.Duration { return pick(d, 20*time.Hour, 9*day, 40*day, 400*day) }

// behead deletes the head of the logs before the world begins.
func (w *world) behead() {
	for _, p := range w.kafka.partitions {
		to := p.holding(min(int64(w.setup.Beheaded*(p.id+1)), p.end))
		if to > p.start {
			p.start = to
			w.count(beheaded)
		}
	}
}

// noteTimes counts the kinds of record times.
func (w *world) noteTimes() {
	for _, p := range w.kafka.partitions {
		latest := int64(0)
		p.visible(0, func(r *stored) {
			switch {
			case r.time <= 0:
				w.count(timeless)
			case r.time < latest-time.Hour.Milliseconds():
				w.count(goesBack)
			}
			latest = max(latest, r.time)
		})
	}
}

// leftOut returns the windows, with their starts, that lack events of the shard: events from before a
// partition's start there, or lost in a gap. Events with a time after Redis's clock at the look-up are not
// guaranteed. A start by time does not find records without a time. Events before a bound, by partition,
// are left out on purpose. The windows are those of a configuration with the added period, or without.
func (sh *shard) leftOut(bounds map[int]int64, has bool, topics ...string) map[string]int64 {
	w := sh.w
	c := w.setup.oracleOf(has)
	c.MaxPoints = 99_999_999 // sums do not matter here
	o := oracle.New(c)
	for _, p := range w.kafka.partitions {
		from, begun := sh.starts[p.id]
		if !begun || len(topics) > 0 && !slices.Contains(topics, p.topic) {
			continue
		}
		p.visible(bounds[p.id], func(r *stored) {
			if !sh.of(r) {
				return
			}
			out := r.offset < from && !w.isElected(p, r) && known(r, sh.looked[p.id]) && (r.time > 0 || r.offset < sh.heads[p.id])
			for _, g := range sh.lost {
				out = out || known(r, g.looked) && g.has(p.id, r)
			}
			if out {
				o.Add(recordOf(p.id, r, false))
			}
		})
	}
	want, err := o.Expected(w.now())
	if err != nil {
		w.failf("the oracle: %v", err)
	}
	all := map[string]int64{}
	for listing, text := range want.Windows {
		l, err := oracle.ReadListing(text)
		if err != nil {
			w.failf("the oracle: %v", err)
		}
		all[listing] = l.Start
	}
	return all
}

// known reports whether a record's time is before a clock. For a record without a time, which nothing
// bounds, the event's time counts.
func known(r *stored, clock int64) bool {
	if r.time > 0 {
		return r.time <= clock
	}
	var e struct {
		At int64 `json:"occurred_at"`
	}
	return json.Unmarshal(r.value, &e) == nil && e.At <= clock
}

// checkWhole checks that no window that is shown as complete lacks an event that any log ever had.
func (sh *shard) checkWhole() {
	origins := sh.origins()
	for listing, start := range sh.leftOut(nil, true) {
		complete := true
		for _, o := range origins {
			complete = complete && o.Time <= start
		}
		if complete {
			sh.w.failf("events are missing from a window that is shown as complete, %s%s: %s", listing, sh.named(), positions(origins))
			return
		}
		sh.w.count(lacking)
	}
}

// origins returns the origins in the shard by partition.
func (sh *shard) origins() map[int]ledger.Origin {
	all := map[int]ledger.Origin{}
	for field, text := range sh.hash(originKey) {
		if strings.HasPrefix(field, "since:") {
			continue // see setsAside
		}
		p := sh.w.idOf(field)
		var err error
		if all[p], err = ledger.ParseOrigin(text); err != nil {
			sh.w.failf("the origin of partition %d: %v", p, err)
		}
	}
	return all
}

// originsRise checks that a start never lowers an origin, except when it starts a whole topic (fresh): then
// the ledger that the origins described is gone.
func (sh *shard) originsRise(fresh string) {
	now := sh.origins()
	for p, was := range sh.since {
		if o := now[p]; sh.w.kafka.partitions[p].topic != fresh && o.Time < was.Time {
			sh.w.failf("the origin of partition %d goes down%s, from %v to %v", p, sh.named(), was, o)
		}
	}
	sh.since = now
}

// refilled checks that a lost Redis is not refilled silently from logs that lack events of live windows.
// Events that the other shards never had may be missing. A process without the added period does not know
// its windows; they are shown as incomplete once the period is added (see setsAside).
func (sh *shard) refilled(topic string, has bool) {
	w := sh.w
	if w.setup.Continue || !sh.counted[topic] {
		return
	}
	bounds := map[int]int64{}
	for _, p := range w.kafka.partitions {
		bounds[p.id] = sh.excused(p.id)
	}
	for listing := range sh.leftOut(bounds, has, topic) {
		w.failf("Redis was lost, and is filled again from logs that lack events of %s%s: on_gap isn't continue", listing, sh.named())
		return
	}
}
