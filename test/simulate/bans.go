package simulate

// This file bans, unbans and erases members, on one board or on all, while everything else happens. The
// bans topic survives all of it. Bringing Redis in line with the topic is the product's work: each process
// follows the topic and updates Redis (banstopic.go).

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

// bansEvery and bansAt select the seeds of worlds with bans: those with the remainder bansAt modulo
// bansEvery.
const bansEvery, bansAt = 11, 7

// bans draws the bans and their times from a generator of its own, so that worlds without bans do not
// change.
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
		// Something that conflicts with the ban, at about the same time.
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

// banned identifies a ban; an empty board means all boards.
type banned struct{ board, member string }

func (b banned) field() string { return b.board + ":" + b.member }

// ban is the latest record of a key, as its author intended it.
type ban struct {
	until  int64 // Unix ms by Redis's clock; 0: no end
	erases bool
	// idle means that no process ever had a reason to show the member here: the key had only bans as
	// records, and none of them has expired.
	idle bool
}

func (b *ban) over(now time.Time) bool { return b.until > 0 && now.UnixMilli() >= b.until }

// bansOf holds the bans outside Redis.
type bansOf struct {
	topic   bansLog
	members []string // members who may be banned
	lasting map[string]bool
	latest  map[banned]*ban // keys without a record were unbanned
	over    map[banned]bool // bans that were noted as expired or were removed
}

// whom chooses the members who may be banned: those with the most events, and one without any.
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
	for _, m := range b.members { // their standings show which of their events were refused
		b.lasting[m] = points[m] > w.setup.MaxPoints || strings.HasPrefix(m, "over")
	}
	b.latest, b.over = map[banned]*ban{}, map[banned]bool{}
	for _, n := range w.setup.BannedBefore {
		w.bansSomebody(n)
	}
}

// happensToBans executes an event about bans, and reports whether it had an effect.
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

// bansSomebody publishes a ban, unless the member is erased: the commands reject that.
func (w *world) bansSomebody(n int) bool {
	boards := []string{"", "", "", "global", "eu", "us"}
	k := banned{boards[n>>3%len(boards)], w.bans.members[n%len(w.bans.members)]}
	if b := w.bans.latest[k]; b != nil && b.erases {
		return false
	}
	r := &bans.Record{}
	ends := ""
	if n>>6%5 >= 3 { // seconds or hours from now; a jump of the clock may skip hours
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

// writeBan writes a record to the topic; nil removes the ban.
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
		panic(err) // the plan is wrong
	}
	idle := !w.bans.over[k] && (b == nil || b.idle)
	b = &ban{erases: r.Erased, idle: idle}
	if !r.Until.IsZero() {
		b.until = r.Until.UnixMilli()
	}
	w.bans.latest[k] = b
	w.bans.topic.append(w, key, value)
}

// notesOver records which bans have expired by Redis's clock, because the clock may go back afterwards.
func (w *world) notesOver() {
	for k, b := range w.bans.latest {
		if b.over(w.now()) && !w.bans.over[k] {
			w.bans.over[k], b.idle = true, false
			w.count(bansEnds)
		}
	}
}

// inForce returns the bans in force on a shard by key, with the value hidden or erased.
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

// placeOf returns where a member's standings on a board belong: "" (shown), hidden or erased.
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

// fields returns the bans that the shard holds, by key.
func (sh *shard) fields() map[banned]string {
	all := map[banned]string{}
	for field, state := range sh.hash("banned") {
		if board, member, ok := strings.Cut(field, ":"); ok {
			all[banned{board, member}] = state
		}
	}
	return all
}

// inLine reports whether every shard hides exactly the members that the topic bans.
func (w *world) inLine() bool {
	if !w.setup.Bans {
		return true
	}
	w.notesOver()
	return !slices.ContainsFunc(w.shards, func(sh *shard) bool { return !maps.Equal(sh.inForce(), sh.fields()) })
}

// outOfLine describes the differences between the shards and the topic.
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

// hiddenBoards returns the hidden sets of the listed windows, without the placeholder "".
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

// lacks reports whether a window lacks a key that its listing names.
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

// standings returns the standings of a shard's members by window, shown and hidden ones.
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

// shown removes from the oracle's boards the members who are not shown, and returns those who must be
// hidden. A window in which only erased members ever were may be listed or not: it is listed if it existed
// before the erasure.
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

// looks checks what must hold in a shard at every moment. It is called after each call that may have
// changed something.
func (sh *shard) looks(c *call) {
	w := sh.w
	if !w.setup.Bans || sh.w.failed != "" {
		return
	}
	w.notesOver()
	for k := range sh.aligned { // also in a shard that has lost data: readers rely on it
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

// knows checks that a process which counts has hidden the members whose bans it knew. It applies the bans
// after it has read where to continue, and counts nothing if the ledger has moved since.
func (sh *shard) knows(c *call) {
	at := c.from.aligned[sh.number]
	if !sh.w.setup.Bans || at == nil || !sh.on.changed.Before(at.at) {
		return
	}
	fields := sh.fields()
	for k, r := range at.known {
		is := banned{k.Board, k.Member}
		if !r.InForce(sh.w.now()) { // the process may not know a later one
			continue
		}
		if b := sh.w.bans.latest[is]; b != nil && b.idle && !b.over(sh.w.now()) && sh.w.shardOf(k.Member) == sh && fields[is] == "" {
			sh.w.failf("process %d counts before it hides %q, and knew of the ban%s", c.from.id, is.field(), sh.named())
		}
	}
}

// bansDone counts the effects of a call of ban.lua.
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

// aboutBan describes a call of ban.lua.
func aboutBan(args []string) string {
	a := arguments(args)
	what := a[1]
	if what == "go" {
		what = "go through " + fmt.Sprint((len(keys(args))-5)/2) + " windows for"
	}
	mark, _, _ := bytes.Cut([]byte(a[3]), []byte(" "))
	return strings.TrimSpace(fmt.Sprintf("bans: %s %q %s", what, a[2], mark))
}

// checkHidden compares the hidden sets with the oracle.
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
