package simulate

// What has to be true at the end of a world, by the oracle.

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/test/oracle"
)

func (w *world) oracle() *oracle.Oracle {
	zone, err := time.LoadLocation(w.setup.Zone)
	if err != nil {
		panic(err)
	}
	first := map[string]time.Weekday{"monday": time.Monday, "sunday": time.Sunday}[w.setup.WeekStart]
	c := oracle.Config{
		Zone: zone, WeekStart: first, MaxPoints: w.setup.MaxPoints, MaxEventBytes: maxEventBytes, MaxFuture: maxFuture, Lateness: lateness,
	}
	for _, name := range w.setup.Periods {
		c.Periods = append(c.Periods, oracle.Period{Name: name, Layout: w.setup.Layout, Retention: retention[name]})
	}
	return oracle.New(c)
}

// records are what has to be counted: all that is committed, from where the partitions
// began, but what a skip went over.
func (w *world) records(do func(partition int, r *stored)) {
	for _, p := range w.kafka.partitions {
		p.visible(w.starts[p.id], func(r *stored) {
			if !w.isLost(p.id, r) {
				do(p.id, r)
			}
		})
	}
}

// isLost reports whether a skip went over the record before it counted.
func (w *world) isLost(partition int, r *stored) bool {
	for _, g := range w.lost {
		if g.partition == partition && r.offset >= g.from && r.offset < g.to {
			if user, ok := userOf(r.value); !ok || hashOf(user) >= g.hash {
				return true
			}
		}
	}
	return false
}

func userOf(value []byte) (string, bool) {
	var e struct {
		User string `json:"user_id"`
	}
	err := json.Unmarshal(value, &e)
	return e.User, err == nil && e.User != ""
}

func recordOf(partition int, r *stored, overflow bool) oracle.Record {
	o := oracle.Record{Partition: partition, Offset: r.offset, Time: r.time, Value: r.value, Overflow: overflow}
	for _, h := range r.headers {
		o.Headers = append(o.Headers, oracle.Header{Key: h.Key, Value: h.Value})
	}
	return o
}

// check compares everything.
func (w *world) check() {
	lettered := map[oracle.At]string{}
	for _, l := range w.kafka.letters {
		lettered[oracle.At{Partition: l.partition, Offset: l.offset}] = l.reason
	}
	refused := w.refusedPoints(lettered)
	o := w.oracle()
	w.records(func(p int, r *stored) {
		o.Add(recordOf(p, r, refused[oracle.At{Partition: p, Offset: r.offset}]))
	})
	want, err := o.Expected(w.now())
	if err != nil {
		w.failf("the oracle: %v", err)
		return
	}
	var d oracle.Differences
	d.Boards(want.Boards, w.boards())
	listed := w.hash(windowsKey)
	for name := range listed {
		if _, live := want.Windows[name]; !live && w.over(listed[name]) {
			delete(listed, name) // its life is over; nobody has to drop it yet
		}
	}
	d.Texts("listing", want.Windows, listed)
	if text := d.String(); text != "" {
		w.failf("the standings differ from the oracle's:\n%s", text)
	}
	d = oracle.Differences{}
	expires := map[string]string{}
	for name, at := range want.Expires {
		expires[name] = fmt.Sprint(at)
	}
	d.Texts("expiry", expires, w.expiries(want.Boards))
	if text := d.String(); text != "" {
		w.failf("the expiries differ from the oracle's:\n%s", text)
	}
	w.checkLetters(o, lettered)
	w.checkCommits()
	w.checkAccounts(o)
}

// over reports whether a listing's window has lived: "start end expires".
func (w *world) over(listing string) bool {
	f := strings.Fields(listing)
	if len(f) != 3 {
		return false
	}
	expires, err := strconv.ParseInt(f[2], 10, 64)
	return err == nil && expires <= w.now().UnixMilli()
}

// expiries are when boards go, in Unix ms; -1 where never.
func (w *world) expiries(boards map[string]map[string]uint64) map[string]string {
	all := map[string]string{}
	for name := range boards {
		left, ok := w.redis.Do("PTTL", boardKeys+name).(int64)
		if at := left; ok && left != -2 { // which is none: the boards differ
			if left >= 0 {
				at += w.now().UnixMilli()
			}
			all[name] = fmt.Sprint(at)
		}
	}
	return all
}

// boards are the sorted sets that are listed.
func (w *world) boards() map[string]map[string]uint64 {
	all := map[string]map[string]uint64{}
	for listing, text := range w.hash(windowsKey) {
		if w.over(text) {
			continue
		}
		members := map[string]uint64{}
		reply, ok := w.redis.Do("ZRANGE", boardKeys+listing, "0", "-1", "WITHSCORES").([]any)
		if !ok {
			continue
		}
		for i := 0; i+1 < len(reply); i += 2 {
			score, err := strconv.ParseFloat(fmt.Sprint(reply[i+1]), 64)
			if err != nil {
				panic(err)
			}
			members[fmt.Sprint(reply[i])] = math.Float64bits(score)
		}
		all[listing] = members
	}
	return all
}

// refusedPoints finds which events were refused for their points. That depends on the
// order and on cuts, so the dead letters say it: an event without one counts, and of
// those with one some may count all the same, where an owner wrote the letter and
// another, who cut otherwise, found room. Some choice has to fit the standings.
func (w *world) refusedPoints(lettered map[oracle.At]string) map[oracle.At]bool {
	type mine struct {
		all   []oracle.Record
		doubt []oracle.At
	}
	members := map[string]*mine{}
	w.records(func(p int, r *stored) {
		user, ok := userOf(r.value)
		if !ok {
			return
		}
		if members[user] == nil {
			members[user] = &mine{}
		}
		m := members[user]
		m.all = append(m.all, recordOf(p, r, false))
		// A rebuild reads in another order, may refuse others, and writes no letters.
		if at := (oracle.At{Partition: p, Offset: r.offset}); lettered[at] == "overflow" || w.counts["swap answers swapped"] > 0 && strings.HasPrefix(user, "over") {
			m.doubt = append(m.doubt, at)
		}
	})
	refused := map[oracle.At]bool{}
	boards := w.boards()
	for _, user := range slices.Sorted(maps.Keys(members)) {
		m := members[user]
		if len(m.doubt) == 0 || len(m.doubt) > 12 {
			continue
		}
		told := 0 // those that have a letter: tried first
		for i, at := range m.doubt {
			if lettered[at] == "overflow" {
				told |= 1 << i
			}
		}
		for other := range 1 << len(m.doubt) {
			chosen := map[oracle.At]bool{}
			for i, at := range m.doubt {
				chosen[at] = (told^other)>>i&1 == 1
			}
			if w.fits(user, m.all, chosen, boards) {
				maps.Copy(refused, chosen)
				break
			}
		}
	}
	return refused
}

// fits reports whether a member's standings are what the events come to without those
// that were refused.
func (w *world) fits(user string, all []oracle.Record, refused map[oracle.At]bool, boards map[string]map[string]uint64) bool {
	o := w.oracle()
	for _, r := range all {
		r.Overflow = refused[oracle.At{Partition: r.Partition, Offset: r.Offset}]
		o.Add(r)
	}
	want, err := o.Expected(w.now())
	if err != nil {
		return false
	}
	for listing, members := range boards {
		w, expected := want.Boards[listing][user]
		g, found := members[user]
		if expected != found || w != g {
			return false
		}
	}
	return true
}

// checkLetters holds the dead letters against the bad events: each once or more, and
// nothing else. Those of events that a later history skips or starts past may be there.
func (w *world) checkLetters(o *oracle.Oracle, lettered map[oracle.At]string) {
	bad := o.Bad()
	for at, reason := range bad {
		if lettered[at] == "" && (reason != "overflow" || w.counts["swap answers swapped"] == 0) {
			w.failf("the event at %v is bad (%s), and has no dead letter", at, reason)
			return
		}
	}
	for _, l := range w.kafka.letters {
		at := oracle.At{Partition: l.partition, Offset: l.offset}
		var is *stored
		w.kafka.partitions[l.partition].visible(l.offset, func(r *stored) {
			if r.offset == l.offset {
				is = r
			}
		})
		if is == nil {
			w.failf("a dead letter is about %v, where no event is", at)
			return
		}
		reason := o.Judge(recordOf(l.partition, is, false))
		switch {
		case reason == l.reason:
		case l.reason == "overflow" && reason == "": // see refusedPoints
			if user, _ := userOf(is.value); w.mostPoints(user) <= w.setup.MaxPoints {
				w.failf("a dead letter says that the event at %v takes %s out of the range, and all of its points don't", at, user)
				return
			}
		default:
			w.failf("a dead letter calls the event at %v %s, and it is %q", at, l.reason, reason)
			return
		}
		if string(l.key) != string(is.key) || string(l.value) != string(is.value) {
			w.failf("the dead letter of %v isn't the event as it came", at)
			return
		}
	}
}

// mostPoints is what a member's points come to without regard to their sign: no standing
// was ever further from 0.
func (w *world) mostPoints(user string) (sum int64) {
	for _, p := range w.kafka.partitions {
		p.visible(0, func(r *stored) {
			var e struct {
				User   string `json:"user_id"`
				Points int64  `json:"points"`
			}
			if json.Unmarshal(r.value, &e) == nil && e.User == user {
				sum += max(e.Points, -e.Points)
			}
		})
	}
	return sum
}

// checkCommits holds that monitors see no lag where there is none.
func (w *world) checkCommits() {
	for _, p := range w.uncommitted() {
		w.failf("partition %d is through at %s, and offset %d is committed", p, w.ledger()[p], w.kafka.committed[p])
	}
}

// uncommitted are the partitions whose offset isn't the ledger's.
func (w *world) uncommitted() []int {
	var all []int
	for p, text := range w.ledger() {
		if fmt.Sprint(w.kafka.committed[p]) != text {
			all = append(all, p)
		}
	}
	slices.Sort(all)
	return all
}

// checkAccounts holds that every process's accounting adds up, and, where no outcome was
// unknown and nothing went back, that they count what the oracle counts.
func (w *world) checkAccounts(o *oracle.Oracle) {
	var total ingest.Count
	dead := int64(0)
	for _, p := range w.processes {
		c := p.stats.Count()
		bad := int64(0)
		for _, n := range c.Dead {
			bad += n
		}
		if sum := c.Applied + c.Late + c.Skipped + c.Repeated + bad; sum != c.Consumed {
			w.failf("process %d consumed %d events, and counts %d: %+v", p.id, c.Consumed, sum, c)
		}
		total.Applied += c.Applied
		total.Late += c.Late
		total.Skipped += c.Skipped
		total.Repeated += c.Repeated
		dead += bad
	}
	if w.unknown || w.disturbed() {
		return
	}
	want := o.Counts()
	if total.Applied != want.Applied || total.Late != want.Late || total.Skipped != want.Skipped || dead != want.DeadLettered() {
		w.failf("the processes count %d applied, %d late, %d skipped, %d dead, %d repeated; the oracle %+v",
			total.Applied, total.Late, total.Skipped, dead, total.Repeated, want)
	}
	w.count("accounting compared with the oracle's")
}

// disturbed reports whether something made events be read again after they counted, or
// never.
func (w *world) disturbed() bool {
	for _, kind := range []string{rollback, wipe, evict, gapOpens, stop, start, rebalance, grow} {
		if w.counts[kind] > 0 {
			return true
		}
	}
	if w.counts["swap answers swapped"] > 0 && slices.ContainsFunc(w.kafka.letters, func(l letter) bool { return l.reason == "overflow" }) {
		return true // a rebuild reads in another order, and refuses others
	}
	for kind := range w.counts {
		if strings.HasPrefix(kind, dies) || strings.HasPrefix(kind, crash) || strings.HasPrefix(kind, "halt") || strings.HasPrefix(kind, silence) || strings.HasPrefix(kind, cutBefore) {
			return true
		}
	}
	return false
}

// startsWell holds where a partition's start was written against what was asked for.
func (w *world) startsWell(partition int, at int64, added bool) {
	p := w.kafka.partitions[partition]
	from, since := w.setup.Start, w.setup.StartTime
	if added {
		from = ingest.FromWindow
	} else {
		w.startsLate(p, at)
	}
	if len(w.kafka.committed) > 0 || len(w.furthest) > w.setup.Partitions || w.counts[wipe]+w.counts[rollback]+w.counts[evict] > 0 {
		if from == ingest.FromLatest || from == ingest.FromTime {
			return // it may be the first start, or Redis was lost: then it is another
		}
		from = ingest.FromWindow // the least that both come to: earlier windows' lives may be over
	}
	switch from {
	case ingest.FromEarliest:
		since = math.MinInt64
	case ingest.FromWindow:
		since = w.liveSince()
	case ingest.FromTime:
	case ingest.FromLatest:
		return
	}
	p.visible(p.start, func(r *stored) {
		if r.offset < at && r.time >= since {
			w.failf("partition %d starts at offset %d, and the event at %d would count too", partition, at, r.offset)
		}
	})
}

// startsLate holds that a topic's first start counts nothing that wasn't asked for.
func (w *world) startsLate(p *partition, at int64) {
	if len(w.kafka.committed) > 0 || p.id >= len(w.ends) {
		return // it may be a lost Redis: that is read from where windows live
	}
	earliest := w.ends[p.id]
	switch w.setup.Start {
	case ingest.FromTime:
		if first := p.first(w.setup.StartTime); first >= 0 {
			earliest = min(earliest, first)
		}
	case ingest.FromLatest:
	case ingest.FromWindow, ingest.FromEarliest: // no record is from before a window that lives
		return
	}
	if at < earliest {
		w.failf("partition %d starts at offset %d, and what was asked for begins at %d", p.id, at, earliest)
	}
}

// first is the first offset of a record of a time or later, whatever became of its
// transaction; -1 without one.
func (p *partition) first(ms int64) int64 {
	for _, b := range p.batches {
		for _, r := range b.records {
			if r.time >= ms {
				return r.offset
			}
		}
	}
	return -1
}

// liveSince is no later than the start of the earliest window that lives, less what
// events may lie in the future. It goes by the product's calendar, as hashOf does by its
// hash; of both the standings tell, which the oracle works out without them.
func (w *world) liveSince() int64 {
	earliest := int64(math.MaxInt64)
	now := w.now()
	for _, name := range w.setup.Periods {
		at := now
		window, err := w.calendar.At(periods.Period(name), at.UnixMilli())
		for err == nil && window.End+retention[name].Milliseconds() > now.UnixMilli() {
			earliest = min(earliest, window.Start)
			window, err = w.calendar.At(periods.Period(name), window.Start-1)
		}
	}
	return earliest - maxFuture.Milliseconds()
}
