package simulate

// Members who are banned on a board or on all, shown again and erased, while everything else
// happens. The topic that says so survives all of it; that Redis is brought in line with it is the
// product's work: each process follows the topic and keeps Redis so (banstopic.go).

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/internal/bans"
	"github.com/standings/standings/test/oracle"
)

const (
	bansMember = "a member is banned"
	bansAll    = "a member is banned on all boards"
	unbans     = "a ban is taken back"
	erases     = "a member is erased"
	bansAway   = "the bans topic is away"
	bansEnds   = "a ban ends by itself"

	hides        = "a member is hidden"
	shows        = "a member is shown again"
	earnedHidden = "members who have standings while they are hidden"
	earnedErased = "members who are erased, and whose events count nowhere"
	hidesAgain   = "a member is hidden again in a Redis that went back"
)

// bansEvery is of how many seeds the one of bansAt is of a world that has bans.
const bansEvery, bansAt = 11, 7

// bans draws who is banned, and when, by draws of its own: worlds without them are as they were.
func (p *plan) bans() {
	if p.seed%bansEvery != bansAt {
		return
	}
	p.banned(&drawer{Rand: rand.New(rand.NewPCG(uint64(p.seed), 0xba25))})
}

func (p *plan) banned(d *drawer) {
	s := &p.setup
	s.Bans = true
	for range d.pick(0, 1, 2) {
		s.BannedBefore = append(s.BannedBefore, d.IntN(1<<16))
	}
	s.BansLag = time.Duration(d.pick(3, 40, 40, 900, 4000)) * time.Millisecond
	for range 3 + d.IntN(6) {
		f := fault{at: d.IntN(d.pick(40, 100, 220)), n: d.IntN(1 << 16)}
		f.kind = pick(d, bansMember, bansMember, bansMember, bansMember, unbans, unbans, erases, bansAway)
		p.events = append(p.events, f)
		if f.kind == bansAway || d.IntN(3) > 0 {
			continue
		}
		// What is at odds with it, about then.
		other := fault{at: f.at + d.IntN(30), n: d.IntN(1 << 16)}
		if other.kind = pick(d, wipe, rollback, rollback, start, rebuilds, rebuilds); other.kind == rebuilds && s.Shards > 1 {
			other.kind = wipe
		}
		p.events = append(p.events, other)
	}
	for range d.IntN(4) {
		p.events = append(p.events, fault{at: d.IntN(d.pick(40, 100, 220)), kind: pick(d, cutBefore, lostAnswer, silence, lateDone, lateDone, slow, slow, refused, dies, dies, crash), on: "ban", n: d.IntN(1 << 16)})
	}
}

// banned is whom a ban is about: on all boards where that is empty.
type banned struct{ board, member string }

func (b banned) field() string { return b.board + ":" + b.member }

// ban is the latest record of a key, as whoever wrote it meant it.
type ban struct {
	until  int64 // by Redis's clock, Unix ms; 0: it doesn't end
	erases bool
	// idle says that nobody ever had a reason to show the member here: the key had no other record
	// than bans, and none of them was ever over.
	idle bool
}

func (b *ban) over(now time.Time) bool { return b.until > 0 && now.UnixMilli() >= b.until }

// bansOf is what there is of bans, beside what Redis has.
type bansOf struct {
	topic   bansLog
	members []string // who may be banned
	lasting map[string]bool
	latest  map[banned]*ban // those without one were taken back
	over    map[banned]bool // counted as such
}

// whom finds who may be banned: those with the most events, and somebody without any.
func (w *world) whom() {
	events, points := map[string]int{}, map[string]int64{}
	for _, s := range w.plan.sendings {
		for i := range s.records {
			var e struct {
				User   string `json:"user_id"`
				Points int64  `json:"points"`
			}
			if json.Unmarshal(s.records[i].value, &e) == nil && e.User != "" {
				events[e.User]++
				points[e.User] += max(e.Points, -e.Points)
			}
		}
	}
	most := slices.SortedFunc(maps.Keys(events), func(a, b string) int {
		return cmp.Or(cmp.Compare(events[b], events[a]), cmp.Compare(a, b))
	})
	b := &w.bans
	b.members = append(slices.Clone(most[:min(4, len(most))]), "nobody")
	b.lasting = map[string]bool{}
	for _, m := range b.members { // which events of theirs were refused is found out by their standings
		b.lasting[m] = points[m] > w.setup.MaxPoints || strings.HasPrefix(m, "over")
	}
	b.latest, b.over = map[banned]*ban{}, map[banned]bool{}
	for _, n := range w.setup.BannedBefore {
		w.bansSomebody(n)
	}
}

// happensToBans reports whether something about bans took effect.
func (w *world) happensToBans(f fault) bool {
	switch f.kind {
	case bansMember:
		return w.bansSomebody(f.n)
	case unbans:
		var all []banned
		for k, b := range w.bans.latest {
			if !b.erases {
				all = append(all, k)
			}
		}
		if len(all) == 0 {
			return false
		}
		slices.SortFunc(all, func(a, b banned) int { return cmp.Compare(a.field(), b.field()) })
		k := all[f.n%len(all)]
		w.tellf("the ban of %q is taken back", k.field())
		w.writeBan(k, nil)
		return true
	case erases:
		k := banned{member: w.bans.members[f.n%len(w.bans.members)]}
		if w.bans.lasting[k.member] {
			return false
		}
		w.tellf("%q is erased", k.member)
		w.writeBan(k, &bans.Record{Erased: true})
		return true
	default:
		w.bans.topic.goesAway(w, f.n)
		return true
	}
}

// bansSomebody publishes a ban, unless that is of somebody who is erased: commands refuse it.
func (w *world) bansSomebody(n int) bool {
	boards := []string{"", "", "", "global", "eu", "us"}
	k := banned{boards[n>>3%len(boards)], w.bans.members[n%len(w.bans.members)]}
	if b := w.bans.latest[k]; b != nil && b.erases {
		return false
	}
	r := &bans.Record{}
	ends := ""
	if n>>6%5 >= 3 { // within seconds, or hours, which a clock may leap over
		r.Until = w.now().Add(time.Duration(1+n>>8%20) * []time.Duration{time.Second, time.Hour}[n>>6%5-3]).Truncate(time.Millisecond)
		ends = fmt.Sprintf(", until %.1f s by Redis's clock", r.Until.Sub(w.now()).Seconds())
	}
	w.tellf("%q is banned%s", k.field(), ends)
	w.writeBan(k, r)
	if k.board == "" {
		w.count(bansAll)
	}
	return true
}

// writeBan writes a record of the topic; nil is that the ban is taken back.
func (w *world) writeBan(k banned, r *bans.Record) {
	w.notesOver()
	key, b := []byte(bans.Key{Board: k.board, Member: k.member}.Text()), w.bans.latest[k]
	if r == nil {
		delete(w.bans.latest, k)
		w.bans.over[k] = true
		w.bans.topic.append(w, key, nil)
		return
	}
	r.Key, r.Reason, r.At = bans.Key{Board: k.board, Member: k.member}, "it says so", w.now()
	_, value, err := r.Encode()
	if err != nil {
		panic(err) // by the plan, which is wrong then
	}
	idle := !w.bans.over[k] && (b == nil || b.idle)
	b = &ban{erases: r.Erased, idle: idle}
	if !r.Until.IsZero() {
		b.until = r.Until.UnixMilli()
	}
	w.bans.latest[k] = b
	w.bans.topic.append(w, key, value)
}

// notesOver notes which bans are over by Redis's clock, which may go back afterwards.
func (w *world) notesOver() {
	for k, b := range w.bans.latest {
		if b.over(w.now()) && !w.bans.over[k] {
			w.bans.over[k], b.idle = true, false
			w.count(bansEnds)
		}
	}
}

// inForce are the bans that hold in a shard: hidden or erased, by their keys.
func (sh *shard) inForce() map[banned]string {
	all := map[banned]string{}
	for k, b := range sh.w.bans.latest {
		switch {
		case sh.w.shardOf(k.member) != sh || b.over(sh.w.now()) && !b.erases:
		case b.erases:
			all[k] = "erased"
		default:
			all[k] = "hidden"
		}
	}
	return all
}

// placeOf is where the standings of a member on a board belong: "", hidden or erased.
func (w *world) placeOf(board, member string) (at string) {
	for _, k := range []banned{{board, member}, {"", member}} {
		b := w.bans.latest[k]
		switch {
		case b == nil || b.over(w.now()) && !b.erases:
		case b.erases:
			return "erased"
		default:
			at = "hidden"
		}
	}
	return at
}

// fields are what the shard has of bans, by their keys.
func (sh *shard) fields() map[banned]string {
	all := map[banned]string{}
	for field, state := range sh.hash("banned") {
		if board, member, ok := strings.Cut(field, ":"); ok {
			all[banned{board, member}] = state
		}
	}
	return all
}

// inLine reports whether every shard hides whom the topic bans, and nobody else.
func (w *world) inLine() bool {
	if !w.setup.Bans {
		return true
	}
	w.notesOver()
	return !slices.ContainsFunc(w.shards, func(sh *shard) bool { return !maps.Equal(sh.inForce(), sh.fields()) })
}

// outOfLine says what isn't.
func (w *world) outOfLine() string {
	if w.inLine() {
		return ""
	}
	var b strings.Builder
	for _, sh := range w.shards {
		if want, got := sh.inForce(), sh.fields(); !maps.Equal(want, got) {
			fmt.Fprintf(&b, "banned%s: %v, and the topic says %v; ", sh.named(), got, want)
		}
	}
	return b.String()
}

// hiddenBoards are the hidden sets of what is listed, without the id that is nobody's.
func (sh *shard) hiddenBoards() map[string]map[string]uint64 {
	all := map[string]map[string]uint64{}
	for listing, text := range sh.hash(windowsKey) {
		if sh.w.over(text) {
			continue
		}
		members := sh.zset(listing + hiddenSuffix)
		delete(members, "")
		if len(members) > 0 {
			all[listing] = members
		}
	}
	return all
}

const hiddenSuffix = ":hidden"

// lacks reports whether a window lacks one of the keys that its listing says it has.
func (sh *shard) lacks(listing, text string) bool {
	shown, hidden := sh.exists(listing), sh.exists(listing+hiddenSuffix)
	l, _ := oracle.ReadListing(text)
	switch l.Sets {
	case "both":
		return !shown || !hidden
	case "hidden":
		return !hidden
	case "none":
		return shown || hidden
	case "lost":
		return true
	case "moving":
		return !shown && !hidden
	}
	return !shown
}

// standings are those of a shard's members, shown or hidden, by window.
func (sh *shard) standings() map[string]map[string]uint64 {
	all := sh.boards()
	if !sh.w.setup.Bans {
		return all
	}
	for listing, members := range sh.hiddenBoards() {
		maps.Copy(all[listing], members)
	}
	return all
}

// shown takes out of what the oracle expects who isn't shown, and returns what has to be hidden.
// A window that only erased members were ever in may be listed or not: it is, if it began before.
func (sh *shard) shown(boards map[string]map[string]uint64, listed func(string) bool, forget func(string)) (hidden map[string]map[string]uint64) {
	w := sh.w
	hidden = map[string]map[string]uint64{}
	erased, hid := map[string]bool{}, map[string]bool{}
	for name, members := range boards {
		board, _, _ := strings.Cut(name, ":")
		beside := map[string]uint64{}
		gone := 0
		for member, score := range members {
			switch w.placeOf(board, member) {
			case "hidden":
				beside[member], hid[member] = score, true
				delete(members, member)
			case "erased":
				erased[member] = true
				delete(members, member)
				gone++
			}
		}
		if len(beside) > 0 {
			hidden[name] = beside
		} else if len(members) == 0 && gone > 0 && !listed(name) {
			forget(name)
		}
	}
	w.counts[earnedHidden] += len(hid)
	w.counts[earnedErased] += len(erased)
	return hidden
}

// looks holds what is true of a shard in every moment, after a call that may have changed something
// in it.
func (sh *shard) looks(c *call) {
	w := sh.w
	if !w.setup.Bans || sh.w.failed != "" {
		return
	}
	w.notesOver()
	for k := range sh.aligned { // also of a shard that has lost something: readers go by it
		if b := w.bans.latest[k]; b == nil || !b.idle {
			delete(sh.aligned, k)
		}
	}
	if sh.on.damaged {
		return
	}
	fields := sh.fields()
	for k := range sh.aligned {
		if state := fields[k]; state != "hidden" && state != "erased" && !strings.HasPrefix(state, "erasing") {
			w.failf("a hidden member is shown again, and nobody has a reason to: %q is %q, by %s%s", k.field(), state, c.what, sh.named())
		}
	}
	for k, state := range fields {
		if b := w.bans.latest[k]; b != nil && b.idle && (state == "hidden" || state == "erased") {
			sh.aligned[k] = true
		}
	}
	for listing, text := range sh.hash(windowsKey) {
		if w.over(text) {
			continue
		}
		board, _, _ := strings.Cut(listing, ":")
		for k, state := range fields {
			if k.board != "" && k.board != board {
				continue
			}
			seen := sh.has(listing, k.member)
			switch {
			case (state == "hidden" || state == "erased") && seen:
				w.failf("a banned member is in what is shown: %q in %s, by %s%s", k.field(), listing, c.what, sh.named())
			case state == "erased" && sh.has(listing+hiddenSuffix, k.member):
				w.failf("an erased member is in what is hidden: %q in %s, by %s%s", k.field(), listing, c.what, sh.named())
			}
		}
		for member := range sh.zset(listing + hiddenSuffix) {
			if member != "" && fields[banned{"", member}] == "" && fields[banned{board, member}] == "" {
				w.failf("a member is hidden whom nobody has banned: %q in %s, by %s%s", member, listing, c.what, sh.named())
			}
		}
	}
}

func (sh *shard) has(set, member string) bool {
	return sh.on.redis.Do("ZSCORE", sh.key(set), member) != nil
}

// knows holds that a process which counts something has hidden the members whose bans it knew: it brings Redis in line
// after it has read where it continues, and counts nothing if the ledger has moved since.
func (sh *shard) knows(c *call) {
	at := c.from.aligned[sh.number]
	if !sh.w.setup.Bans || at == nil || !sh.on.changed.Before(at.at) {
		return
	}
	fields := sh.fields()
	for k, r := range at.known {
		is := banned{k.Board, k.Member}
		if !r.InForce(sh.w.now()) { // the process may not know of a later one
			continue
		}
		if b := sh.w.bans.latest[is]; b != nil && b.idle && !b.over(sh.w.now()) && sh.w.shardOf(k.Member) == sh && fields[is] == "" {
			sh.w.failf("process %d counts before it hides %q, and knew of the ban%s", c.from.id, is.field(), sh.named())
		}
	}
}

// bansDone notes what a call of ban.lua did.
func (sh *shard) bansDone(c *call) {
	a := arguments(c.command.Args)
	switch {
	case a[1] != "end":
	case a[4] == "":
		sh.w.count(shows)
	default:
		sh.w.count(hides)
		if !sh.on.changed.IsZero() {
			sh.w.count(hidesAgain)
		}
	}
	sh.on.keep()
}

// aboutBan says what a call of ban.lua is to do.
func aboutBan(args []string) string {
	a := arguments(args)
	what := a[1]
	if what == "go" {
		what = "go through " + fmt.Sprint((len(keys(args))-5)/2) + " windows for"
	}
	mark, _, _ := bytes.Cut([]byte(a[3]), []byte(" "))
	return strings.TrimSpace(fmt.Sprintf("bans: %s %q %s", what, a[2], mark))
}

// checkHidden compares what is hidden with what the members have earned.
func (sh *shard) checkHidden(want map[string]map[string]uint64, expires map[string]int64) {
	w := sh.w
	if !w.setup.Bans {
		return
	}
	var d oracle.Differences
	d.Boards(want, sh.hiddenBoards())
	if text := d.String(); text != "" {
		w.failf("what is hidden differs from the oracle's%s:\n%s", sh.named(), text)
	}
	for name := range want {
		left, _ := sh.on.redis.Do("PTTL", sh.key(name+hiddenSuffix)).(int64)
		if at := w.now().UnixMilli() + left; at != expires[name] {
			w.failf("what is hidden expires otherwise than what is shown%s: %s at %d, and not at %d", sh.named(), name, at, expires[name])
		}
	}
	for _, name := range sh.names() {
		listing, is := strings.CutSuffix(name, hiddenSuffix)
		if is && !strings.HasPrefix(name, "~") && sh.hash(windowsKey)[listing] == "" {
			w.failf("something is hidden beside a window that isn't listed%s: %s", sh.named(), name)
		}
	}
}
