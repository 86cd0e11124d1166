package explain

// This file decides whether the log and Redis agree, and lists what may explain a difference.

import (
	"fmt"
	"strings"
	"time"

	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/units"
)

// note is a fact about the standing. docs/json.md describes the kinds.
type note struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// answer contains the facts that were read, and the conclusion.
type answer struct {
	*account
	held       *held
	sources    []*source
	unreadable []string           // dead-letter topics that this user may not read
	lookBack   int64              // event.duplicates
	rules      ledger.Fingerprint // of the configuration
	retention  time.Duration
	lateness   time.Duration

	agree *bool // nil: unknown
	notes []note
	// doubtful means that the two may differ because of a note, so that a difference proves nothing.
	doubtful bool
}

func (a *answer) notef(kind, format string, args ...any) {
	a.notes = append(a.notes, note{kind, fmt.Sprintf(format, args...)})
}

// doubtf adds a note that can explain a difference.
func (a *answer) doubtf(kind, format string, args ...any) {
	a.notef(kind, format, args...)
	a.doubtful = true
}

// judge decides whether the log and Redis agree, and adds the notes.
func (a *answer) judge() {
	same := a.same(&a.total, a.held.standing)
	if !same && a.refused > 0 && a.same(&a.whole, a.held.standing) {
		a.recount()
		same = true
		a.notef("recount", "events that were refused when they came first count: a rebuild has read the log again")
	}
	a.ofRedis()
	for _, s := range a.sources {
		a.ofLog(s)
	}
	if n := a.refused - a.unreadThen; n > 0 {
		a.doubtf("refused", "%s of this member refused when applied: which those are depends on the order in which events came, and a rebuild may find others", units.Plural(n, "event"))
	}
	if a.unreadThen > 0 {
		a.doubtf("batch", "%s of this member in record batches that a consumer had too little memory to read (too_large): consumer rebuild counts them", units.Plural(a.unreadThen, "event"))
	}
	if len(a.unreadable) > 0 {
		a.doubtf("dead_letters", "this user may not read %s: refused events are shown as counted", units.Names(a.unreadable))
	}
	if a.unread > 0 {
		a.notef("unread", "%s of this time may belong to the member: see consumer dead-letters list", units.Plural(a.unread, "record"))
	}
	if _, ok := a.standing(&a.total); !ok {
		a.doubtf("range", "the events exceed the range of a standing: some must have been refused")
	}
	if same || !a.doubtful {
		a.agree = &same
	}
}

// batch adds a note about a record batch that cannot be read, if it may hold events of the window.
func (a *answer) batch(s *source, rec *recordbatch.Record, maxFuture time.Duration) {
	w := a.window
	before := rec.Time > 0 && rec.Time+maxFuture.Milliseconds() < w.Start
	after := rec.Whole.First >= w.End+a.lateness.Milliseconds()
	if before || after || !in(s.position, rec.Offset, a.hash) || s.finalFor(rec.Offset, a.hash) {
		return
	}
	a.doubtf("batch", "%v: offsets %d to %d can't be read, and don't count: %s. Events of this member may be among them",
		s.Partition, rec.Offset, rec.Whole.Last, rec.TooLarge("fold_memory"))
}

// ofRedis adds the notes about the state of Redis.
func (a *answer) ofRedis() {
	h, b := a.held, &a.held.board
	switch {
	case b.Lost != "":
		where := ""
		if b.LostOn != "" {
			where = " in " + b.LostOn
		}
		a.doubtf("lost", "Redis has lost the board (%s)%s: rebuild it from the log (consumer rebuild), or restore a backup", b.Lost, where)
	case h.state.Schema == "":
		a.doubtf("nothing", "Redis has no keys under this prefix: no consumer has started yet, or Redis was lost")
	case !b.Listed && time.UnixMilli(a.window.End).Add(a.retention).Before(h.state.Now):
		a.doubtf("not_listed", "the retention of the window is over: Redis keeps it no more")
	case !b.Listed:
		a.notef("not_listed", "Redis does not list the window: no event was counted in it, or it was dropped")
		a.doubtful = a.doubtful || a.counts.Counted > 0
	}
	a.ofSeal()
	if len(h.incomplete) > 0 {
		a.doubtf("incomplete", "the window is incomplete: its boards began later than it, or after a gap, in %s", units.Names(h.incomplete))
	}
	switch h.banned {
	case "erased":
		a.notef("erased", "the member is erased: their events do not count")
	case "hidden":
		a.notef("hidden", "the member is banned, and not shown: the rank is the one that they would have")
	}
	if h.pending {
		a.doubtf("ban_pending", "a ban of the member is being carried out, or taken back")
	}
}

// ofSeal adds the notes about a window that is or was final. Events that arrived while a reopened window
// was final are not in it until a rebuild.
func (a *answer) ofSeal() {
	s, passed := &a.held.seal, ""
	if len(s.Passed) > 0 {
		passed = ", nor events that came while it was final before"
	}
	switch {
	case s.Final && s.Ledger == nil || s.Unknown:
		a.doubtf("seal_lost", "the window is or was final, last as revision %d, but Redis has lost the ledgers of its seal: events that came while it was final are shown as counted", s.Revision)
	case s.Final:
		a.notef("final", "the window is final, revision %d, since %s: later events do not count in it%s", s.Revision, s.At.UTC().Format(time.RFC3339), passed)
	case len(s.Passed) > 0:
		a.notef("reopened", "the window was final, revision %d, and was reopened (%s): events that came while it was final count after a rebuild", s.Revision, s.Reopened)
	}
}

// ofLog adds the notes about a partition.
func (a *answer) ofLog(s *source) {
	p := s.Partition
	if s.missing != "" {
		a.doubtf("missing", "%v: %s", p, s.missing)
		return
	}
	if s.gone {
		a.doubtf("log_gone", "%v: the log starts at offset %d, and deleted records may have been events of the window", p, s.log.Start)
	} else if a.lookBack > 0 && s.log.Start > max(0, s.from-a.lookBack) {
		a.doubtf("look_back", "%v: some of the %d records before offset %d are deleted: an event that repeats one of them is shown as counted", p, a.lookBack, s.from)
	}
	if s.log.End < s.position.To {
		a.doubtf("log_short", "%v: the log ends at offset %d, before the ledger's position %v: the topic was recreated, or truncated", p, s.log.End, s.position)
	}
	if to, ok := a.held.state.Refills[p.String()]; ok && s.position.From < to {
		a.notef("refilling", "%v: Redis was lost or the boards were rebuilt, and the log is being read again up to offset %d", p, to)
	}
	if strings.HasPrefix(s.text, ledger.TornMark) {
		a.doubtf("torn", "%v: the ledger is torn at %v: a piece was written in part, and only a rebuild settles it", p, s.position)
	}
	if s.position.Sweeping() {
		in := "and isn't in it yet"
		if a.hash < s.position.Hash {
			in = "and is in it"
		}
		a.notef("sweep", "%v: offsets %d to %d are being applied, member by member in the order of their hashes; this member's is %016x, %s",
			p, s.position.From, s.position.To-1, a.hash, in)
	}
	by := s.position.Rules
	if by == 0 {
		by, _ = ledger.ParseFingerprint(a.held.rules[p.String()]) // an unreadable text counts as unknown rules
	}
	if by != 0 && by != a.rules {
		a.doubtf("rules", "%v: it was counted by the rules %v last, and this configuration's are %v: boards, event.fields, lateness, max_future or duplicates differ", p, by, a.rules)
	}
}
