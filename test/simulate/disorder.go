package simulate

// Times that go back. A record's time is its producer's word: whoever was offline sends old
// ones, and some have none. So the first record that a log still has says nothing of those
// before it, and what is shown as complete is held against all that there ever was.

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/test/oracle"
)

const originKey = prefix + ":{0}:origin"

const (
	beheaded = "a log whose head was gone before anybody came"
	timeless = "records without a time"
	goesBack = "records whose times go back"
	lacking  = "windows that lack events, and are shown as incomplete"
)

var occurredAt = regexp.MustCompile(`"occurred_at":\d+`)

// disorder makes records old, wherever they lie, and takes the times of some.
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
				continue // the event's own time is all that there is
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
	if d.IntN(2) == 0 {
		p.setup.Beheaded = 1 + d.IntN(40)
	}
	// A log's head is gone, and Redis with what it knew of that.
	if d.IntN(2) == 0 {
		at := 20 + d.IntN(100)
		p.events = append(p.events,
			fault{at: at, kind: pick(d, truncate, truncate, gapOpens), n: d.IntN(1 << 16)},
			fault{at: at + d.IntN(40), kind: pick(d, wipe, wipe, rebuilds), n: d.IntN(1 << 16)})
	}
}

func (d *drawer) back() time.Duration { return pick(d, 20*time.Hour, 9*day, 40*day, 400*day) }

// behead takes the head of the logs before the world begins.
func (w *world) behead() {
	for _, p := range w.kafka.partitions {
		to := p.holding(min(int64(w.setup.Beheaded*(p.id+1)), p.end))
		if to > p.start {
			p.start = to
			w.count(beheaded)
		}
	}
}

// noteTimes counts what the records' times are like.
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

// leftOut are the windows that events would be in which aren't: of before a partition
// began, or lost in a gap. Each with its start. What was from after Redis's clock when that
// was looked at nobody promises.
func (w *world) leftOut() map[string]int64 {
	c := w.oracleConfig()
	c.MaxPoints = 99_999_999 // nobody asks for their sums
	o := oracle.New(c)
	for _, p := range w.kafka.partitions {
		from, begun := w.starts[p.id]
		if !begun {
			continue
		}
		p.visible(0, func(r *stored) {
			out := r.offset < from && known(r, w.looked[p.id])
			for _, g := range w.lost {
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
		start, _, _ := strings.Cut(text, " ")
		all[listing], _ = strconv.ParseInt(start, 10, 64)
	}
	return all
}

// known reports whether a record is from before a clock, or else, where it has no time, its
// event: nothing bounds that.
func known(r *stored, clock int64) bool {
	if r.time > 0 {
		return r.time <= clock
	}
	var e struct {
		At int64 `json:"occurred_at"`
	}
	return json.Unmarshal(r.value, &e) == nil && e.At <= clock
}

// checkWhole holds that no window is shown as complete that lacks an event which any log
// ever held.
func (w *world) checkWhole() {
	origins := w.origins()
	for listing, start := range w.leftOut() {
		complete := true
		for _, o := range origins {
			complete = complete && o.Time <= start
		}
		if complete {
			w.failf("events are missing from a window that is shown as complete, %s: %s", listing, positions(origins))
			return
		}
		w.count(lacking)
	}
}

// origins are what stands in Redis, by partition.
func (w *world) origins() map[int]ledger.Origin {
	all := map[int]ledger.Origin{}
	for field, text := range w.hash(originKey) {
		p, err := strconv.Atoi(strings.TrimPrefix(field, topic+"/"))
		if err != nil {
			panic(err)
		}
		if all[p], err = ledger.ParseOrigin(text); err != nil {
			w.failf("the origin of partition %d: %v", p, err)
		}
	}
	return all
}

// originsRise holds that a start never takes back what was said to be incomplete, unless it
// is the start of all: with the ledger went what its origins were about.
func (w *world) originsRise(rise bool) {
	now := w.origins()
	for p, was := range w.since {
		if o := now[p]; rise && o.Time < was.Time {
			w.failf("the origin of partition %d goes down, from %v to %v", p, was, o)
		}
	}
	w.since = now
}

// refilled holds that a lost Redis isn't filled again without a word from logs that lack
// events of windows which live.
func (w *world) refilled() {
	if w.setup.Continue || !w.counted {
		return
	}
	for listing := range w.leftOut() {
		w.failf("Redis was lost, and is filled again from logs that lack events of %s: on_gap isn't continue", listing)
		return
	}
}
