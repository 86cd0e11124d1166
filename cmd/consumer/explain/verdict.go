package explain

// This file decides whether the log and Redis agree, and lists what may explain a difference.

import (
	"fmt"
	"strings"
	"time"

	"github.com/standings/standings/internal/kafkaconn/recordbatch"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/units"
)

// note is a fact that may explain a difference.
type note struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
	// inexact means that the two may differ because of this fact, so that a difference proves nothing.
	inexact bool
}

// The kinds of notes.
const (
	noteLogGone    = "log_gone"     // Kafka has deleted events of the window
	noteMissing    = "missing"      // a partition cannot be read
	noteLogShort   = "log_short"    // the log ends before the ledger
	noteLost       = "lost"         // Redis has lost the board
	noteNothing    = "nothing"      // Redis has no keys under the prefix
	noteNotListed  = "not_listed"   // Redis does not list the window
	noteIncomplete = "incomplete"   // the boards began after the window's start
	noteRefilling  = "refilling"    // after a loss or a rebuild, the log is being read again
	noteTorn       = "torn"         // a script died midway
	noteSweep      = "sweep"        // a batch is partly applied
	noteRules      = "rules"        // events were counted under other rules
	noteRefused    = "refused"      // events were refused, which depends on their order
	noteLetters    = "dead_letters" // dead letters cannot be read
	noteUnread     = "unread"       // records too damaged to tell whose they are
	noteBatch      = "batch"        // a record batch takes, or took, too much memory to read
	noteRange      = "range"        // the result exceeds the range of a standing
	noteLookBack   = "look_back"    // duplicates of deleted events cannot be found
	noteRecount    = "recount"      // a rebuild has counted refused events
	noteHidden     = "hidden"       // the member is banned
	noteErased     = "erased"       // the member is erased
	noteBan        = "ban_pending"  // a ban is being applied
	noteFinal      = "final"        // the window is final
	noteNoLedger   = "seal_lost"    // the window is or was final, but the seal's ledger is lost
	noteReopened   = "reopened"     // the window was reopened; events that arrived while it was final are not in it
)

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
}

// judge decides whether the log and Redis agree, and adds the notes.
func (a *answer) judge() {
	same := a.same(&a.total, a.held.standing)
	if !same && a.refused > 0 && a.same(&a.whole, a.held.standing) {
		a.recount()
		same = true
		a.addf(noteRecount, false, "events that were refused when they came first count: a rebuild has read the log again")
	}
	a.ofRedis()
	for _, s := range a.sources {
		a.ofLog(s)
	}
	if n := a.refused - a.unreadThen; n > 0 {
		a.addf(noteRefused, true, "%s of this member refused when applied: which those are depends on the order in which events came, and a rebuild may find others", units.Plural(n, "event"))
	}
	if a.unreadThen > 0 {
		a.addf(noteBatch, true, "%s of this member in record batches that a consumer had too little memory to read (too_large): consumer rebuild counts them", units.Plural(a.unreadThen, "event"))
	}
	if len(a.unreadable) > 0 {
		a.addf(noteLetters, true, "this user may not read %s: refused events are shown as counted", units.Names(a.unreadable))
	}
	if a.unread > 0 {
		a.addf(noteUnread, false, "%s of this time may belong to the member: see consumer dead-letters list", units.Plural(a.unread, "record"))
	}
	if _, ok := a.standing(&a.total); !ok {
		a.addf(noteRange, true, "the events exceed the range of a standing: some must have been refused")
	}
	if a.agree = &same; same {
		return
	}
	for i := range a.notes {
		if a.notes[i].inexact {
			a.agree = nil
		}
	}
}

func (a *answer) addf(kind string, inexact bool, format string, args ...any) {
	a.notes = append(a.notes, note{kind, fmt.Sprintf(format, args...), inexact})
}

// batch adds a note about a record batch that cannot be read, if it may hold events of the window.
func (a *answer) batch(s *source, rec *recordbatch.Record, maxFuture time.Duration) {
	w := a.window
	before := rec.Time > 0 && rec.Time+maxFuture.Milliseconds() < w.Start
	after := rec.Whole.First >= w.End+a.lateness.Milliseconds()
	if before || after || !s.has(rec.Offset, a.hash) || s.finalFor(rec.Offset, a.hash) {
		return
	}
	a.addf(noteBatch, true, "%v: offsets %d to %d can't be read, and don't count: %s. Events of this member may be among them",
		s.Partition, rec.Offset, rec.Whole.Last, rec.TooLarge("fold_memory"))
}

// ofRedis adds the notes about the state of Redis.
func (a *answer) ofRedis() {
	h, b := a.held, &a.held.board
	over := time.UnixMilli(a.window.End).Add(a.retention).Before(h.state.Now)
	switch {
	case b.Lost != "":
		where := ""
		if b.LostOn != "" {
			where = " in " + b.LostOn
		}
		a.addf(noteLost, true, "Redis has lost the board (%s)%s: rebuild it from the log (consumer rebuild), or restore a backup", b.Lost, where)
	case h.state.Schema == "":
		a.addf(noteNothing, true, "Redis has no keys under this prefix: no consumer has started yet, or Redis was lost")
	case !b.Listed && over:
		a.addf(noteNotListed, true, "the retention of the window is over: Redis keeps it no more")
	case !b.Listed:
		a.addf(noteNotListed, a.counts.Counted > 0, "Redis does not list the window: no event was counted in it, or it was dropped")
	}
	a.ofSeal(&h.seal)
	if len(h.incomplete) > 0 {
		a.addf(noteIncomplete, true, "the window is incomplete: its boards began later than it, or after a gap, in %s", units.Names(h.incomplete))
	}
	switch h.banned() {
	case "erased":
		a.addf(noteErased, false, "the member is erased: their events do not count")
	case "hidden":
		a.addf(noteHidden, false, "the member is banned, and not shown: the rank is the one that they would have")
	}
	if h.pending() {
		a.addf(noteBan, true, "a ban of the member is being carried out, or taken back")
	}
}

// ofSeal adds the notes about a window that is or was final. Events that arrived while a reopened window
// was final are not in it until a rebuild.
func (a *answer) ofSeal(s *ranking.Seal) {
	passed := ""
	if len(s.Passed) > 0 {
		passed = ", nor events that came while it was final before"
	}
	switch {
	case s.Final && s.Ledger == nil || s.Unknown:
		a.addf(noteNoLedger, true, "the window is or was final, last as revision %d, but Redis has lost the ledgers of its seal: events that came while it was final are shown as counted", s.Revision)
	case s.Final:
		a.addf(noteFinal, false, "the window is final, revision %d, since %s: later events do not count in it%s", s.Revision, s.At.UTC().Format(time.RFC3339), passed)
	case len(s.Passed) > 0:
		a.addf(noteReopened, false, "the window was final, revision %d, and was reopened (%s): events that came while it was final count after a rebuild", s.Revision, s.Reopened)
	}
}

// ofLog adds the notes about a partition.
func (a *answer) ofLog(s *source) {
	field := s.String()
	addf := func(kind string, inexact bool, format string, args ...any) {
		a.addf(kind, inexact, "%s: "+format, append([]any{field}, args...)...)
	}
	if s.missing != "" {
		addf(noteMissing, true, "%s", s.missing)
		return
	}
	if s.gone {
		addf(noteLogGone, true, "the log starts at offset %d, and deleted records may have been events of the window", s.log.Start)
	} else if a.lookBack > 0 && s.log.Start > max(0, s.from-a.lookBack) {
		addf(noteLookBack, true, "some of the %d records before offset %d are deleted: an event that repeats one of them is shown as counted", a.lookBack, s.from)
	}
	if s.log.End < s.position.To {
		addf(noteLogShort, true, "the log ends at offset %d, before the ledger's position %v: the topic was recreated, or truncated", s.log.End, s.position)
	}
	if to, ok := a.held.state.Refills[field]; ok && s.position.From < to {
		addf(noteRefilling, false, "Redis was lost or the boards were rebuilt, and the log is being read again up to offset %d", to)
	}
	if strings.HasPrefix(s.text, ledger.TornMark) {
		addf(noteTorn, true, "the ledger is torn at %v: a piece was written in part, and only a rebuild settles it", s.position)
	}
	if s.position.Sweeping() {
		in := "and isn't in it yet"
		if a.hash < s.position.Hash {
			in = "and is in it"
		}
		addf(noteSweep, false, "offsets %d to %d are being applied, member by member in the order of their hashes; this member's is %016x, %s",
			s.position.From, s.position.To-1, a.hash, in)
	}
	by := s.position.Rules
	if by == 0 {
		by, _ = ledger.ParseFingerprint(a.held.rules[field]) // an unreadable text counts as unknown rules
	}
	if by != 0 && by != a.rules && s.sweep == nil {
		addf(noteRules, true, "it was counted by the rules %v last, and this configuration's are %v: boards, event.fields, lateness, max_future or duplicates differ", by, a.rules)
	}
}
