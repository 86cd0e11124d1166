package simulate

// What has to be true at the end of a world, by the oracle.

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/internal/ingest"
	"github.com/standings/standings/test/oracle"
)

func (w *world) oracle() *oracle.Oracle { return oracle.New(w.oracleConfig()) }

func (w *world) oracleConfig() oracle.Config {
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
	return c
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
	return slices.ContainsFunc(w.lost, func(g gone) bool { return g.has(partition, r) })
}

func (g gone) has(partition int, r *stored) bool {
	if g.partition != partition || r.offset < g.from || r.offset >= g.to {
		return false
	}
	user, ok := userOf(r.value)
	return !ok || hashOf(user) >= g.hash
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
	if n := w.setup.MaxWindows; n > 0 && int64(len(listed)) > n {
		w.failf("%d windows are listed, and at most %d may be", len(listed), n)
	}
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
	w.checkWhole()
	w.noteTimes()
	w.noteIDs()
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
