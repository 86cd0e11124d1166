package simulate

// This file checks the end of a world with the oracle.

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/internal/ingest/counts"
	"github.com/standings/standings/internal/zoneinfo"
	"github.com/standings/standings/test/oracle"
)

func (w *world) oracle() referee {
	if w.setup.Ruled != nil {
		return &ruledReferee{w: w}
	}
	c := w.setup.oracle()
	if w.setup.Zones {
		c.Borders = w.borders()
	}
	return oracle.New(c)
}

// oracle returns the oracle's configuration with the added period.
func (s *setup) oracle() oracle.Config { return s.oracleOf(true) }

// oracleOf returns the oracle's configuration, with the added period or without.
func (s *setup) oracleOf(has bool) oracle.Config {
	zone, err := zoneinfo.Load(s.Zone)
	if err != nil {
		panic(err)
	}
	first := map[string]time.Weekday{"monday": time.Monday, "sunday": time.Sunday}[s.WeekStart]
	c := oracle.Config{
		Zone: zone, WeekStart: first, MaxPoints: s.MaxPoints, MaxEventBytes: maxEventBytes, MaxFuture: maxFuture, Lateness: lateness,
		Duplicates: s.Duplicates, Names: s.Names,
	}
	for _, name := range s.periodsOf(has) {
		c.Periods = append(c.Periods, oraclePeriod(name, s.Layout))
	}
	return c
}

// records calls do for the records that must be counted: all committed records from the start of their
// partition in the shard of their member, except those that were skipped there. A record without a member
// is read if any shard reads it.
func (w *world) records(do func(partition int, r *stored)) {
	for _, p := range w.kafka.partitions {
		p.visible(0, func(r *stored) {
			if slices.ContainsFunc(w.shards, func(sh *shard) bool { return sh.counts(p.id, r) }) {
				do(p.id, r)
			}
		})
	}
}

// counts reports whether the shard must count a record, provided that the record belongs to it.
func (sh *shard) counts(partition int, r *stored) bool {
	if r.offset < sh.starts[partition] || slices.ContainsFunc(sh.lost, func(g gone) bool { return g.has(partition, r) }) {
		return false
	}
	user, ok := userOf(r.value)
	return !ok || sh.w.shardOf(user) == sh
}

// of reports whether a record has a member, and the member belongs to the shard.
func (sh *shard) of(r *stored) bool {
	user, ok := userOf(r.value)
	return ok && sh.w.shardOf(user) == sh
}

// shardOf returns the shard of a member: the shards divide the range of hashes evenly.
func (w *world) shardOf(user string) *shard {
	high, _ := bits.Mul64(hashOf(user), uint64(len(w.shards)))
	return w.shards[high]
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

// counted returns the oracle's record: it does not count in windows that were final when it came.
func (w *world) counted(partition int, r *stored, overflow bool) oracle.Record {
	o := recordOf(partition, r, overflow)
	o.Without = w.withoutRefused(partition, r.offset, w.without(partition, r))
	return o
}

func recordOf(partition int, r *stored, overflow bool) oracle.Record {
	o := oracle.Record{Partition: partition, Offset: r.offset, Time: r.time, Value: r.value, Overflow: overflow}
	for _, h := range r.headers {
		o.Headers = append(o.Headers, oracle.Header{Key: h.Key, Value: h.Value})
	}
	return o
}

// livesAgain counts windows that had expired before Redis's clock went back: they may lack events that came
// meanwhile.
const livesAgain = "a window lives again, by a clock that went back"

// check compares everything.
func (w *world) check() {
	lettered := map[oracle.At]string{}
	for _, l := range w.kafka.letters {
		lettered[oracle.At{Partition: l.partition, Offset: l.offset}] = l.reason
	}
	refused := w.refusedPoints(lettered)
	for _, sh := range w.shards {
		sh.check(refused)
	}
	o := w.oracle()
	w.records(func(p int, r *stored) {
		record := w.counted(p, r, refused[oracle.At{Partition: p, Offset: r.offset}])
		record.Lacks = w.lacked(p, r)
		o.Add(record)
	})
	w.before(o, func(p int, r *stored) bool {
		return slices.ContainsFunc(w.shards, func(sh *shard) bool { return sh.counts(p, r) })
	})
	w.checkDeadLetters(o, lettered)
	w.checkCommits()
	w.checkTrails()
	w.checkAccounts(o)
	for _, sh := range w.shards {
		sh.checkWhole()
		sh.saysWhatPassed()
	}
	if w.roomless {
		w.count(fullRoom)
	}
	w.noteTimes()
	w.noteIDs()
	w.noteShards()
	w.noteRepeats(o.Counts())
	w.noteFinals()
	w.noteZones()
}

// check compares the content of a shard with the oracle's result for its members' events.
func (sh *shard) check(refused map[oracle.At]bool) {
	w, o := sh.w, sh.w.oracle()
	for _, p := range w.kafka.partitions {
		p.visible(sh.starts[p.id], func(r *stored) {
			if sh.of(r) && sh.counts(p.id, r) {
				o.Add(w.counted(p.id, r, refused[oracle.At{Partition: p.id, Offset: r.offset}]))
			}
		})
	}
	w.before(o, func(p int, r *stored) bool { return r.offset >= sh.starts[p] && sh.of(r) && sh.counts(p, r) })
	want, err := o.Expected(w.now())
	if err != nil {
		w.failf("the oracle: %v", err)
		return
	}
	for name := range w.dropped {
		delete(want.Boards, name)
		delete(want.Windows, name)
		delete(want.Expires, name)
	}
	boards, listed := sh.boards(), sh.hash(windowsKey)
	for name, text := range listed {
		if listed[name] = openListing(text); listed[name] == "" {
			delete(listed, name)
		}
	}
	for _, all := range []map[string]string{want.Windows, listed} {
		for name, text := range all {
			if w.overBy(text, w.latest()) && !w.over(text) {
				for _, m := range []map[string]map[string]uint64{want.Boards, boards} {
					delete(m, name)
				}
				delete(want.Windows, name)
				delete(listed, name)
				w.count(livesAgain)
			}
		}
	}
	for _, name := range sh.setsAside(want.Boards, boards, want.Windows, listed) {
		delete(want.Boards, name)
		delete(want.Windows, name)
		delete(boards, name)
		delete(listed, name)
	}
	hidden := sh.shown(want.Boards, func(name string) bool { return listed[name] != "" }, func(name string) {
		delete(want.Boards, name)
		delete(want.Windows, name)
	})
	for name, members := range boards {
		for user := range members {
			if other := w.shardOf(user); other != sh {
				w.failf("member %q of shard %d is in %s%s", user, other.number, name, sh.named())
			}
		}
	}
	var d oracle.Differences
	d.Boards(want.Boards, boards)
	if n := w.setup.MaxWindows; n > 0 && int64(len(listed)) > n {
		w.failf("%d windows are listed, and at most %d may be", len(listed), n)
	}
	for name := range listed {
		if _, live := want.Windows[name]; !live && w.over(listed[name]) {
			delete(listed, name) // expired, but not necessarily dropped yet
		}
	}
	for name, text := range want.Windows {
		want.Windows[name] = withSets(text, len(want.Boards[name]) > 0, len(hidden[name]) > 0 || sh.has(name+hiddenSuffix, ""))
	}
	d.Texts("listing", want.Windows, listed)
	if text := d.String(); text != "" {
		w.failf("the standings differ from the oracle's%s:\n%s", sh.named(), text)
	}
	maps.DeleteFunc(want.Names, func(member, _ string) bool { return w.placeOf("", member) == "erased" })
	sh.checkNames(want.Names)
	sh.checkHidden(hidden, want.Expires)
	d = oracle.Differences{}
	expires := map[string]string{}
	for name, at := range want.Expires {
		if len(want.Boards[name]) > 0 {
			expires[name] = fmt.Sprint(at)
		}
	}
	d.Texts("expiry", expires, sh.expiries(want.Boards))
	if text := d.String(); text != "" {
		w.failf("the expiries differ from the oracle's%s:\n%s", sh.named(), text)
	}
}

// over reports whether a listing's window has expired.
func (w *world) over(listing string) bool { return w.overBy(listing, w.now()) }

func (w *world) overBy(listing string, now time.Time) bool {
	l, err := oracle.ReadListing(listing)
	return err == nil && l.Expires <= now.UnixMilli()
}

// withSets returns the listing with the names of the window's sets, if it has a hidden set.
func withSets(listing string, shown, hidden bool) string {
	l, err := oracle.ReadListing(listing)
	if err != nil || !hidden {
		return listing
	}
	l.Sets = "hidden"
	if shown {
		l.Sets = "both"
	}
	return l.Text()
}

// expiries returns when the boards' keys expire, in Unix ms; -1: never.
func (sh *shard) expiries(boards map[string]map[string]uint64) map[string]string {
	all := map[string]string{}
	for name := range boards {
		left, ok := sh.on.redis.Do("PTTL", sh.key(name)).(int64)
		if at := left; ok && left != -2 { // -2 means no key; then the boards differ anyway
			if left >= 0 {
				at += sh.w.now().UnixMilli()
			}
			all[name] = fmt.Sprint(at)
		}
	}
	return all
}

// boards returns the sorted sets of the listed windows.
func (sh *shard) boards() map[string]map[string]uint64 {
	all := map[string]map[string]uint64{}
	for listing, text := range sh.hash(windowsKey) {
		if sh.w.over(text) {
			continue
		}
		if members := sh.zset(listing); members != nil && openListing(text) != "" {
			all[listing] = members
		}
	}
	return all
}

// zset returns a sorted set; nil if the key is not one.
func (sh *shard) zset(name string) map[string]uint64 {
	reply, ok := sh.on.redis.Do("ZRANGE", sh.key(name), "0", "-1", "WITHSCORES").([]any)
	if !ok {
		return nil
	}
	members := map[string]uint64{}
	for i := 0; i+1 < len(reply); i += 2 {
		score, err := strconv.ParseFloat(fmt.Sprint(reply[i+1]), 64)
		if err != nil {
			panic(err)
		}
		members[fmt.Sprint(reply[i])] = math.Float64bits(score)
	}
	return members
}

// checkCommits checks that monitors see no lag if there is none.
func (w *world) checkCommits() {
	for _, p := range w.uncommitted() {
		w.failf("partition %d is through at %s, and offset %d is committed", p, w.ledgers().of(p), w.kafka.committed[p])
	}
}

// uncommitted returns the partitions whose committed offset differs from the ledgers.
func (w *world) uncommitted() []int {
	var all []int
	ledgers := w.ledgers()
	for _, p := range w.kafka.partitions {
		if ledgers.of(p.id) != "" && !ledgers.at(p.id, w.kafka.committed[p.id]) {
			all = append(all, p.id)
		}
	}
	return all
}

// checkAccounts checks that the accounting of every process adds up. If every process learned the outcome
// of its calls and nothing went back, it also checks that the processes count the same events as the
// oracle.
func (w *world) checkAccounts(o referee) {
	var total counts.Count
	dead := int64(0)
	for _, p := range w.processes {
		c := p.stats.Count()
		bad := int64(0)
		for _, n := range c.Dead {
			bad += n
		}
		if sum := c.Applied + c.Late + c.Early + c.Skipped + c.Repeated + c.Duplicates + bad; sum != c.Consumed {
			w.failf("process %d consumed %d events, and counts %d: %+v", p.id, c.Consumed, sum, c)
		}
		total.Applied += c.Applied
		total.Late += c.Late
		total.Early += c.Early
		total.Skipped += c.Skipped
		total.Repeated += c.Repeated
		total.Duplicates += c.Duplicates
		dead += bad
	}
	if w.unknown || len(w.unheard) > 0 || w.disturbed() {
		return
	}
	want := o.Counts()
	if total.Applied != want.Applied || total.Late != want.Late || total.Early != want.Early || total.Skipped != want.Skipped || total.Duplicates != want.Duplicates || dead != want.DeadLettered() {
		w.failf("the processes count %d applied, %d late, %d early, %d skipped, %d dead, %d repeated, %d duplicates; the oracle %+v",
			total.Applied, total.Late, total.Early, total.Skipped, dead, total.Repeated, total.Duplicates, want)
	}
	w.count("accounting compared with the oracle's")
}

// disturbed reports whether something may have made processes count events again or not at all.
func (w *world) disturbed() bool {
	for _, kind := range []string{rollback, wipe, evict, gapOpens, stop, start, rebalance, grow, topicMade, configure, rebuiltBehind, adds, "apply answers sealed"} {
		if w.counts[kind] > 0 {
			return true
		}
	}
	if w.counts["swap answers swapped"] > 0 && slices.ContainsFunc(w.kafka.letters, func(l letter) bool { return l.reason == "overflow" }) {
		return true // a rebuild reads in another order, and refuses other events
	}
	for kind := range w.counts {
		if strings.HasPrefix(kind, dies) || strings.HasPrefix(kind, crash) || strings.HasPrefix(kind, "halt") || strings.HasPrefix(kind, silence) || strings.HasPrefix(kind, cutBefore) {
			return true
		}
	}
	return false
}
