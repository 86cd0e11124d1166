package simulate

// What is true of a snapshot that is whole, of one shard: what would come back of it is what the log
// says. That is worked out without the product's restore, by the two sentences of what a snapshot is:
//
//	score of a member on a page   = its score there + its events that the page's ledger doesn't denote
//	score of a member on no page  = its events that the first ledger doesn't denote
//
// Both are what the whole log says if a row has exactly the events that its page's ledger denotes, and
// who is on no page has none that the first ledger does. Which of those count (from where a partition
// began, without what a gap took, or a final window refused) is of the history that the page was read
// in: Redis may have gone back between two pages.

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/oracle"
)

// judging is what is known of the log as a snapshot is judged.
type judging struct {
	*taken

	w       *world
	config  oracle.Config
	events  map[string][]snapEvent       // of the shard's members
	known   map[string]map[string]uint64 // what events come to, by window
	expires map[string]int64             // windows' lives, Unix ms
}

// snapEvent is a record of a member.
type snapEvent struct {
	partition int
	r         *stored
	hash      uint64
}

// standing is a member's in a window, if it has one.
type standing struct {
	bits  uint64
	there bool
}

func (s standing) String() string {
	if !s.there {
		return "nothing"
	}
	return fmt.Sprint(math.Float64frombits(s.bits))
}

func (t *taken) judge() {
	w := t.sh.w
	t.all = append(t.all, t.begin)
	if slices.ContainsFunc(t.all, func(s *saw) bool { return s.evicted }) {
		return // what Redis evicts is gone for all
	}
	j := &judging{taken: t, w: w, events: map[string][]snapEvent{}, known: map[string]map[string]uint64{}, expires: map[string]int64{}}
	if w.setup.Ruled == nil {
		j.config = w.setup.oracle()
	}
	for _, p := range w.kafka.partitions {
		p.visible(0, func(r *stored) {
			if user, ok := userOf(r.value); ok && w.shardOf(user) == t.sh {
				j.events[user] = append(j.events[user], snapEvent{p.id, r, hashOf(user)})
			}
		})
	}
	for _, s := range t.all {
		j.isLater(s)
	}
	for _, name := range slices.Sorted(maps.Keys(t.read)) {
		if _, dropped := t.beside.Dropped[name]; !dropped && !t.read[name].gone {
			j.window(name, t.read[name])
		}
	}
	j.unread()
	j.note()
}

func (j *judging) failf(format string, args ...any) {
	j.w.failf("a snapshot isn't what the log says%s, begun at %v: "+format, append([]any{j.sh.named(), j.begin}, args...)...)
}

// isLater holds that no page is of before the first ledger: the log is read again from there.
func (j *judging) isLater(s *saw) {
	for _, user := range slices.Sorted(maps.Keys(j.events)) {
		for _, e := range j.events[user] {
			if in(j.begin.ledger[e.partition], e.r.offset, e.hash) && !in(s.ledger[e.partition], e.r.offset, e.hash) {
				j.failf("a page at %v is of before", s)
				return
			}
		}
	}
}

// window judges one that is in it.
func (j *judging) window(name string, is *takenWindow) {
	first, rows := is.pages[0], map[string]uint64{}
	final := ranking.ListedRevision(first.Listing) > 0
	for _, page := range is.pages {
		for _, row := range page.Rows {
			if row.Member == "" {
				continue
			}
			if j.w.shardOf(row.Member) != j.sh {
				j.failf("%q of %s is another shard's", row.Member, name)
			}
			rows[row.Member] = math.Float64bits(row.Score)
			if final {
				continue
			}
			has := standing{math.Float64bits(row.Score), true}
			if may := j.may(name, row.Member, page.at, first.at); !slices.Contains(may, has) {
				j.failf("%q has %v in %s on a page at %v, and %v by that", row.Member, has, name, page.at, may)
			}
		}
	}
	if final {
		j.final(name, first, rows)
		return
	}
	for _, user := range slices.Sorted(maps.Keys(j.events)) {
		if hasKey(rows, user) || j.erased(name, user) {
			continue
		}
		if may := j.may(name, user, j.begin, first.at); !slices.Contains(may, standing{}) {
			j.failf("%q is on no page of %s, and has %v by the first ledger", user, name, may)
		}
	}
}

// final judges a final window: no event is added to what is on its pages.
func (j *judging) final(name string, first takenPage, rows map[string]uint64) {
	was := first.at.inside.sealed.final[name]
	if was == nil {
		j.failf("%s is final there, and isn't", name)
		return
	}
	for member, score := range was.members {
		if is, there := rows[member]; (!there || is != score) && !j.erased(name, member) {
			j.failf("%q has %v in %s, which is final, and %v there", member, standing{score, true}, name, standing{is, there})
		}
	}
	for member := range rows {
		if !hasKey(was.members, member) {
			j.failf("%q is in %s, which is final, and isn't in it", member, name)
		}
	}
}

// unread holds that what isn't in the snapshot is over, or dropped, or has all of its events past the
// first ledger.
func (j *judging) unread() {
	for _, user := range slices.Sorted(maps.Keys(j.events)) {
		var counted []snapEvent
		for _, e := range j.events[user] {
			if j.begin.denotes(e) {
				counted = append(counted, e)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(j.comesTo(user, counted, "", nil))) {
			_, dropped := j.beside.Dropped[name]
			if is := j.read[name]; is != nil && !is.gone || dropped || j.isOver(name) || j.erased(name, user) {
				continue
			}
			if may := j.may(name, user, j.begin, j.begin); !slices.Contains(may, standing{}) {
				j.failf("%s isn't in it, and %q has %v there by the first ledger", name, user, may)
				return
			}
		}
	}
}

// isOver reports whether a window's life was, at some moment.
func (j *judging) isOver(name string) bool {
	return slices.ContainsFunc(j.all, func(s *saw) bool { return j.expires[name] <= s.now.UnixMilli() })
}

func (j *judging) erased(name, member string) bool {
	board, _, _ := strings.Cut(name, ":")
	return slices.ContainsFunc(j.all, func(s *saw) bool {
		return s.erased[banned{"", member}] || s.erased[banned{board, member}]
	})
}

// denotes reports whether an event counted by the ledger of a moment.
func (s *saw) denotes(e snapEvent) bool {
	return in(s.ledger[e.partition], e.r.offset, e.hash) && e.r.offset >= s.inside.starts[e.partition] &&
		!slices.ContainsFunc(s.inside.lost, func(g gone) bool { return g.has(e.partition, e.r) })
}

// may are the standings that a member may have in a window by the ledger of a moment. What the window had
// refused as a final one, and was open again before it was begun to be read, isn't in it.
func (j *judging) may(name, user string, at, begun *saw) (all []standing) {
	var counted []snapEvent
	without := map[oracle.At]bool{}
	for _, e := range j.events[user] {
		if !at.denotes(e) {
			continue
		}
		in := func(all map[string][]span) bool {
			return slices.ContainsFunc(all[name], func(one span) bool { return one.has(e.partition, e.r, e.hash) })
		}
		counted = append(counted, e)
		if in(at.inside.sealed.refused) && in(begun.inside.sealed.refused) {
			without[oracle.At{Partition: e.partition, Offset: e.r.offset}] = true
		}
	}
	bits, there := j.comesTo(user, counted, name, without)[name]
	return []standing{{bits, there}}
}

// comesTo is what events of a member come to, some of them not in a window.
func (j *judging) comesTo(user string, events []snapEvent, name string, without map[oracle.At]bool) map[string]uint64 {
	key := []byte(user)
	if len(without) > 0 {
		key = append(append(key, 0), name...)
	}
	for _, e := range events {
		key = fmt.Appendf(key, " %d/%d", e.partition, e.r.offset)
		if without[oracle.At{Partition: e.partition, Offset: e.r.offset}] {
			key = append(key, '-')
		}
	}
	if known, there := j.known[string(key)]; there {
		return known
	}
	var o referee = &ruledReferee{w: j.w}
	if j.w.setup.Ruled == nil {
		o = oracle.New(j.config)
	}
	for _, e := range events {
		r := recordOf(e.partition, e.r, false)
		if without[oracle.At{Partition: e.partition, Offset: e.r.offset}] {
			r.Without = map[string]bool{name: true}
		}
		o.Add(r)
	}
	all := map[string]uint64{}
	want, err := o.Expected(beginning.Add(-day))
	if err != nil {
		j.w.failf("the oracle: %v", err)
	}
	for name, members := range want.Boards {
		j.expires[name] = want.Expires[name] - day.Milliseconds()
		if bits, there := members[user]; there {
			all[name] = bits
		}
	}
	j.known[string(key)] = all
	return all
}

// note counts what was met.
func (j *judging) note() {
	w := j.w
	for name, is := range j.read {
		if is.gone {
			w.count(snapGone)
			continue
		}
		if ranking.ListedRevision(is.pages[0].Listing) > 0 {
			w.count(snapFinal)
		}
		if !hasKey(j.begin.listed, name) {
			w.count(snapOpened)
		}
		on, moved := map[string]bool{}, false
		for _, page := range is.pages {
			moved = moved || !maps.Equal(page.at.ledger, is.pages[0].at.ledger)
			for _, row := range page.Rows {
				if on[row.Member] {
					w.count(snapAgain)
				}
				if page.Hidden && row.Member != "" {
					w.count(snapHidden)
				}
				on[row.Member] = true
			}
		}
		if moved {
			w.count(snapMoved)
		}
	}
	for _, s := range j.all {
		if strings.Contains(s.String(), "@") {
			w.count(snapSweep)
			break
		}
	}
}
