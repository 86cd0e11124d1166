package ingest

// Rules may change from one owner of a partition to the next. What was begun by some rules is
// finished by them, whoever finishes it, so that a record counts by one reading of it alone:
//
//	found in the ledger                       is read by
//	a sweep with a fingerprint                the rules of that
//	a sweep without, of an older version      one's own, and that is logged
//	shards that stand at different offsets    up to the furthest, the rules that are noted there
//	anything else                             one's own
//
// The periods are one's own, too. A schema has them, and a process whose schema differs writes nothing: so a period that
// was added meanwhile has the rest of a sweep, and a shard that began with the period has all that is read for it.
//
// The text of rules comes into a shard with the first piece by them. So whoever finds a
// fingerprint finds its text, unless something else has removed it: then the partition halts.

import (
	"fmt"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/rules"
)

// rulebook is one set of rules: what records are read by. It may be shared, but for the decoder.
type rulebook struct {
	note    ledger.Note // of no fingerprint: the configuration has no text
	events  event.Rules
	fold    fold.Rules
	decoder *event.Decoder // a reader's

	duplicates int64 // records to look back
}

// Counting is what decides what a record results in.
type Counting struct {
	Events     event.Rules
	Windows    fold.Rules
	Duplicates int64 // records to look back; 0: repeats count
}

func newBook(note ledger.Note, c Counting) *rulebook {
	return &rulebook{note: note, events: c.Events, fold: c.Windows, decoder: event.NewDecoder(c.Events), duplicates: c.Duplicates}
}

func (b *rulebook) id() ledger.Fingerprint { return b.note.Rules }

// fingerprintOf is that of a text, 0 of none.
func fingerprintOf(text string) ledger.Fingerprint {
	if text == "" {
		return 0
	}
	f, err := ledger.ParseFingerprint(rules.Fingerprint(text))
	if err != nil {
		panic(err) // of 2^64 texts one has no fingerprint
	}
	return f
}

func (c *Consumer) ownBook() *rulebook {
	return newBook(ledger.Note{Rules: fingerprintOf(c.RulesText), Text: c.RulesText}, Counting{c.Events, c.Rules.By(c.borders.known), c.Duplicates})
}

// readRules reads rules that another process has noted. Their windows have the settled borders, too.
func (c *Consumer) readRules(text string) (Counting, error) {
	counting, err := c.ReadRules(text)
	counting.Windows = counting.Windows.By(c.borders.known)
	return counting, err
}

// rulebooks are a partition's own rules, and those of others that it has met.
type rulebooks struct {
	*partition
	own        *rulebook
	others     map[ledger.Fingerprint]*rulebook
	read       func(text string) (Counting, error)
	foldMemory int64
}

// has reports whether a fingerprint's rules are known, or nothing need be known of it.
func (all *rulebooks) has(id ledger.Fingerprint) bool {
	return id == 0 || id == all.own.id() || all.others[id] != nil
}

// of is the rulebook of a fingerprint that it has.
func (all *rulebooks) of(id ledger.Fingerprint) *rulebook {
	if b := all.others[id]; b != nil && id != all.own.id() {
		return b
	}
	return all.own
}

// learn reads rules out of what a shard keeps, if they aren't known. what is what was begun by them.
func (all *rulebooks) learn(id ledger.Fingerprint, kept map[string]string, what string) error {
	if all.has(id) {
		return nil
	}
	text, ok := kept[id.String()]
	halt := &health.Halt{Reason: health.HaltRules}
	switch {
	case !ok:
		halt.What = fmt.Sprintf("%s was begun by rules of which Redis has the fingerprint, %v, and not the text: something else removed it", what, id)
	case fingerprintOf(text) != id:
		halt.What = fmt.Sprintf("%s was begun by the rules %v, and their text in Redis was changed", what, id)
	}
	if halt.What != "" {
		halt.Remedy = "start a consumer with the configuration that it was begun by, until this is through; or " + health.LedgerRemedy
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
			What:   fmt.Sprintf("%s was begun by other rules, which this process can't go by: %v", what, err),
			Remedy: "start a consumer of that version and configuration, until this is through"}
	}
	counting.Windows = counting.Windows.With(&all.own.fold)
	if all.others == nil {
		all.others = map[ledger.Fingerprint]*rulebook{}
	}
	all.others[id] = newBook(ledger.Note{Rules: id, Text: text}, counting)
	return nil
}

// inherited is what a flow goes on with that another owner began.
type inherited struct {
	noted []ledger.Fingerprint // by shard: what its ledger's partition is counted by
	// Shards that stand before level are brought there by rules, which are those of whoever
	// brought the others there.
	level int64
	rules ledger.Fingerprint
}

// inherit finds out what was begun by which rules, from where the shards stand and what is kept
// there.
func (all *rulebooks) inherit(at ledger.Positions, states []ledger.State) (inherited, error) {
	in := inherited{noted: make([]ledger.Fingerprint, len(at))}
	furthest := 0
	for i, p := range at {
		what := fmt.Sprintf("the sweep of %s at %v%s", all.field, p, onShard(i, ledger.Shards(len(at))))
		if err := all.learn(p.Rules, states[i].Rules, what); err != nil {
			return in, err
		}
		in.noted[i], _ = ledger.ParseFingerprint(states[i].Rules[all.field]) // what can't be read is noted again
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
