package simulate

// This file checks the dead letters: they must cover exactly the bad events. It also finds out which events
// were refused because of their points.

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/standings/standings/test/oracle"
)

// refusedPoints finds the events that were refused because of their points. That depends on order and on
// how batches were cut, so it uses the dead letters: an event without one counts. An event with one may
// count nevertheless, if one owner wrote the dead letter and another, with other batches, found room. Some
// choice of refused events must fit the standings.
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
		m.all = append(m.all, w.counted(p, r, false))
		// A rebuild reads in another order, may refuse other events, and writes no dead letters.
		if at := (oracle.At{Partition: p, Offset: r.offset}); refusable(lettered[at]) || w.counts["swap answers swapped"] > 0 && strings.HasPrefix(user, "over") {
			m.doubt = append(m.doubt, at)
		}
	})
	refused := map[oracle.At]bool{}
	standings := map[string]map[string]uint64{} // by user
	for _, sh := range w.shards {
		for listing, members := range sh.standings() {
			for user, score := range members {
				if standings[user] == nil {
					standings[user] = map[string]uint64{}
				}
				standings[user][listing] = score
			}
		}
	}
	for _, user := range slices.Sorted(maps.Keys(members)) {
		m := members[user]
		if len(m.doubt) == 0 {
			continue
		}
		if len(m.doubt) > 12 { // too many to try: trust the dead letters
			for _, at := range m.doubt {
				refused[at] = refusable(lettered[at])
			}
			continue
		}
		told := 0 // a bit mask of those with a dead letter, which is tried first
		for i, at := range m.doubt {
			if refusable(lettered[at]) {
				told |= 1 << i
			}
		}
		fits := false
		for other := range 1 << len(m.doubt) {
			chosen := map[oracle.At]bool{}
			for i, at := range m.doubt {
				chosen[at] = (told^other)>>i&1 == 1
			}
			if fits = w.fits(user, m.all, chosen, standings[user]); fits {
				maps.Copy(refused, chosen)
				break
			}
		}
		if !fits && w.counts["swap answers swapped"] > 0 {
			w.refusedByWindow(user, m.all, m.doubt, standings[user])
		}
	}
	return refused
}

// windowLimit is the reason of an event that would open too many windows.
const windowLimit = "window_limit"

// refusable reports whether a reason depends on order and on how batches were cut.
func refusable(reason string) bool { return reason == "overflow" || reason == windowLimit }

// fits reports whether a member's standings, by window, result from the events without the refused ones.
func (w *world) fits(user string, all []oracle.Record, refused map[oracle.At]bool, standings map[string]uint64) bool {
	o := w.oracle()
	for _, r := range all {
		r.Overflow = refused[oracle.At{Partition: r.Partition, Offset: r.Offset}]
		o.Add(r)
	}
	want, err := o.Expected(w.now())
	if err != nil {
		return false
	}
	fit := 0
	for listing, members := range want.Boards {
		score, found := standings[listing]
		if w.dropped[listing] || !found && w.overBy(want.Windows[listing], w.latest()) {
			continue
		}
		if !found || score != members[user] {
			return false
		}
		fit++
	}
	return fit == len(standings)
}

// checkDeadLetters compares the dead letters with the bad events: at least one each, and no others. Dead
// letters of events that were later skipped, or that lie before a later start, may exist.
func (w *world) checkDeadLetters(o referee, lettered map[oracle.At]string) {
	bad := o.Bad()
	for at, reason := range bad {
		rebuilt := w.counts["swap answers swapped"] > 0 // a rebuild writes none
		if lettered[at] == "" && (!rebuilt || reason != "overflow" && !w.goodBySome(at)) {
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
		reason := w.bad(recordOf(l.partition, is, false), l.reason)
		switch {
		case reason == l.reason:
		case l.reason == windowLimit && reason == "" && w.setup.MaxWindows > 0 && (w.setup.Windows == 0 || w.setup.Windows > w.setup.MaxWindows-w.setup.MaxWindows/10):
			w.count(windowLimit)
		case l.reason == "overflow" && reason == "": // see refusedPoints
			if user, _ := userOf(is.value); w.mostPoints(user) <= w.setup.MaxPoints && !w.mayOverflow(user) {
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

// bad returns why a record is bad: the reason of its dead letter if some configuration gives that reason.
func (w *world) bad(r oracle.Record, letter string) string {
	if w.setup.Ruled == nil {
		return oracle.New(w.setup.oracle()).Judge(r)
	}
	if w.judges(r, letter) {
		return letter
	}
	if letter == oracle.Overflow && w.judges(r, "") {
		return ""
	}
	return w.judged(r, 0).reason
}

// goodBySome reports whether the configuration has changed and the event is good under one of the
// configurations.
func (w *world) goodBySome(at oracle.At) (good bool) {
	if len(w.setup.Books) == 0 {
		return false
	}
	w.kafka.partitions[at.Partition].visible(at.Offset, func(r *stored) {
		good = good || r.offset == at.Offset && w.judges(recordOf(at.Partition, r, false), "")
	})
	return good
}

// mostPoints returns the sum of the absolute values of a member's points: no standing was ever further from
// 0.
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
