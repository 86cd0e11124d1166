package ingest

// The rules may change from one owner of a partition to the next. A sweep that was started by some rules is
// finished by the same rules, whichever worker finishes it, so that each record counts by one reading only:
//
//	in the ledger                             is read by
//	a sweep with a fingerprint                the rules of the fingerprint
//	a sweep without one, of an older version  the process's own rules; this is logged
//	shards at different offsets               up to the furthest: the rules noted there
//	anything else                             the process's own rules
//
// The periods are always the process's own. The schema contains them, and a process whose schema differs writes
// nothing. So a period that was added meanwhile gets the rest of a sweep, and a shard that began with the
// period gets everything that is read for it.
//
// The text of rules is stored in a shard with the first piece that uses them. So a worker that finds a
// fingerprint also finds its text, unless something else has removed it: then the partition halts.

import (
	"fmt"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/rules"
)

// rulebook is one set of rules by which records are read. It may be shared, except for its decoder.
type rulebook struct {
	note    ledger.Note // without a fingerprint if the configuration has no text
	events  event.Rules
	fold    fold.Rules
	decoder *event.Decoder // used only by one reader

	duplicates int64 // number of records to look back
}

// Counting is the set of rules that decide how a record counts.
type Counting struct {
	Events     event.Rules
	Windows    fold.Rules
	Duplicates int64 // number of records to look back; 0: no duplicate detection
}

func newBook(note ledger.Note, c Counting) *rulebook {
	return &rulebook{note: note, events: c.Events, fold: c.Windows, decoder: event.NewDecoder(c.Events), duplicates: c.Duplicates}
}

func (b *rulebook) id() ledger.Fingerprint { return b.note.Rules }

// fingerprintOf returns a text's fingerprint; 0 for an empty text.
func fingerprintOf(text string) ledger.Fingerprint {
	if text == "" {
		return 0
	}
	f, err := ledger.ParseFingerprint(rules.Fingerprint(text))
	if err != nil {
		panic(err) // one text in 2^64 has no fingerprint
	}
	return f
}

func (c *Consumer) ownBook() *rulebook {
	return newBook(ledger.Note{Rules: fingerprintOf(c.RulesText), Text: c.RulesText}, Counting{c.Events, c.Rules.By(c.borders.known), c.Duplicates})
}

// readRules parses rules that another process has noted. Their windows also use the settled borders.
func (c *Consumer) readRules(text string) (Counting, error) {
	counting, err := c.ReadRules(text)
	counting.Windows = counting.Windows.By(c.borders.known)
	return counting, err
}

// rulebooks holds a partition's own rules, and the rules of other owners that it has found.
type rulebooks struct {
	*partition
	own        *rulebook
	others     map[ledger.Fingerprint]*rulebook
	read       func(text string) (Counting, error)
	foldMemory int64
}

// has reports whether the rules of a fingerprint are known; the fingerprint 0 needs none.
func (all *rulebooks) has(id ledger.Fingerprint) bool {
	return id == 0 || id == all.own.id() || all.others[id] != nil
}

// of returns the rulebook of a known fingerprint.
func (all *rulebooks) of(id ledger.Fingerprint) *rulebook {
	if b := all.others[id]; b != nil && id != all.own.id() {
		return b
	}
	return all.own
}

// learn reads the rules of a fingerprint from a shard's stored texts, unless they are known. what names the
// work that was started by them, for errors.
func (all *rulebooks) learn(id ledger.Fingerprint, kept map[string]string, what string) error {
	if all.has(id) {
		return nil
	}
	text, ok := kept[id.String()]
	halt := &health.Halt{Reason: health.HaltRules}
	switch {
	case !ok:
		halt.What = fmt.Sprintf("%s was begun by rules whose fingerprint %v is in Redis, but not their text: something else removed it", what, id)
	case fingerprintOf(text) != id:
		halt.What = fmt.Sprintf("%s was begun by the rules %v, and their text in Redis was changed", what, id)
	}
	if halt.What != "" {
		halt.Remedy = "start a consumer with the configuration that began it, until it is done; or " + health.LedgerRemedy
		return halt
	}
	counting, err := all.read(text)
	if err == nil {
		if least := LeastMemory(int64(counting.Events.MaxEventBytes)); least > all.foldMemory {
			err = fmt.Errorf("their max_event_bytes of %d takes a fold_memory of %d", counting.Events.MaxEventBytes, least)
		}
	}
	if err != nil {
		return &health.Halt{Reason: health.HaltRules,
			What:   fmt.Sprintf("%s was begun by other rules, which this process cannot use: %v", what, err),
			Remedy: "start a consumer of that version and configuration, until this is through"}
	}
	counting.Windows = counting.Windows.With(&all.own.fold)
	if all.others == nil {
		all.others = map[ledger.Fingerprint]*rulebook{}
	}
	all.others[id] = newBook(ledger.Note{Rules: id, Text: text}, counting)
	return nil
}

// inherited is the work of another owner that a flow continues.
type inherited struct {
	noted []ledger.Fingerprint // by shard: the rules noted for the partition
	// Shards before the offset level are moved there by rules: those by which the other shards were moved
	// there.
	level int64
	rules ledger.Fingerprint
}

// inherit determines which work was started by which rules, from the shards' positions and their stored texts.
func (all *rulebooks) inherit(at ledger.Positions, states []ledger.State) (inherited, error) {
	in := inherited{noted: make([]ledger.Fingerprint, len(at))}
	furthest := 0
	for i, p := range at {
		what := fmt.Sprintf("the sweep of %s at %v%s", all.field, p, onShard(i, ledger.Shards(len(at))))
		if err := all.learn(p.Rules, states[i].Rules, what); err != nil {
			return in, err
		}
		in.noted[i], _ = ledger.ParseFingerprint(states[i].Rules[all.field]) // an unreadable fingerprint is noted again
		if p.To > at[furthest].To || p.To == at[furthest].To && p.Sweeping() {
			furthest = i
		}
	}
	by := at[furthest].Rules
	if !at[furthest].Sweeping() {
		by = in.noted[furthest]
	}
	if at.Lowest() < at[furthest].To && by != 0 && by != all.own.id() {
		what := fmt.Sprintf("what lies between %d and %d of %s, which not every shard has,", at.Lowest(), at[furthest].To, all.field)
		if err := all.learn(by, states[furthest].Rules, what); err != nil {
			return in, err
		}
		in.level, in.rules = at[furthest].To, by
	}
	return in, nil
}
