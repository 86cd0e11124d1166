// Package rulebook holds the rules by which records are read: a process's own, and those of other owners.
//
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
package rulebook

import (
	"fmt"

	"github.com/standings/standings/internal/ingest/event"
	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/internal/ingest/health"
	"github.com/standings/standings/internal/ingest/memory"
	"github.com/standings/standings/internal/ingest/shards"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/rules"
)

// Book is one set of rules by which records are read. It may be shared, except for its decoder.
type Book struct {
	Note    ledger.Note // without a fingerprint if the configuration has no text
	Events  event.Rules
	Fold    fold.Rules
	Decoder *event.Decoder // used only by one reader

	Duplicates int64 // number of records to look back
}

// Counting is the set of rules that decide how a record counts.
type Counting struct {
	Events     event.Rules
	Windows    fold.Rules
	Duplicates int64 // number of records to look back; 0: no duplicate detection
}

// New returns a rulebook with a decoder of its own.
func New(note ledger.Note, c Counting) *Book {
	return &Book{Note: note, Events: c.Events, Fold: c.Windows, Decoder: event.NewDecoder(c.Events), Duplicates: c.Duplicates}
}

// ID returns the fingerprint of the rules; 0 if they have no text.
func (b *Book) ID() ledger.Fingerprint { return b.Note.Rules }

// FingerprintOf returns a text's fingerprint; 0 for an empty text.
func FingerprintOf(text string) ledger.Fingerprint {
	if text == "" {
		return 0
	}
	f, err := ledger.ParseFingerprint(rules.Fingerprint(text))
	if err != nil {
		panic(err) // one text in 2^64 has no fingerprint
	}
	return f
}

// Books holds a partition's own rules, and the rules of other owners that it has found.
type Books struct {
	Field      string // the partition's name in the ledger
	Own        *Book
	others     map[ledger.Fingerprint]*Book
	Read       func(text string) (Counting, error)
	FoldMemory int64
}

// Has reports whether the rules of a fingerprint are known; the fingerprint 0 needs none.
func (all *Books) Has(id ledger.Fingerprint) bool {
	return id == 0 || id == all.Own.ID() || all.others[id] != nil
}

// Of returns the rulebook of a known fingerprint.
func (all *Books) Of(id ledger.Fingerprint) *Book {
	if b := all.others[id]; b != nil && id != all.Own.ID() {
		return b
	}
	return all.Own
}

// Learn reads the rules of a fingerprint from a shard's stored texts, unless they are known. what names the
// work that was started by them, for errors.
func (all *Books) Learn(id ledger.Fingerprint, kept map[string]string, what string) error {
	if all.Has(id) {
		return nil
	}
	text, ok := kept[id.String()]
	halt := &health.Halt{Reason: health.HaltRules}
	switch {
	case !ok:
		halt.What = fmt.Sprintf("%s was begun by rules whose fingerprint %v is in Redis, but not their text: something else removed it", what, id)
	case FingerprintOf(text) != id:
		halt.What = fmt.Sprintf("%s was begun by the rules %v, and their text in Redis was changed", what, id)
	}
	if halt.What != "" {
		halt.Remedy = "start a consumer with the configuration that began it, until it is done; or " + health.LedgerRemedy
		return halt
	}
	counting, err := all.Read(text)
	if err == nil {
		if least := memory.LeastMemory(int64(counting.Events.MaxEventBytes)); least > all.FoldMemory {
			err = fmt.Errorf("their max_event_bytes of %d takes a fold_memory of %d", counting.Events.MaxEventBytes, least)
		}
	}
	if err != nil {
		return &health.Halt{Reason: health.HaltRules,
			What:   fmt.Sprintf("%s was begun by other rules, which this process cannot use: %v", what, err),
			Remedy: "start a consumer of that version and configuration, until this is through"}
	}
	counting.Windows = counting.Windows.With(&all.Own.Fold)
	if all.others == nil {
		all.others = map[ledger.Fingerprint]*Book{}
	}
	all.others[id] = New(ledger.Note{Rules: id, Text: text}, counting)
	return nil
}

// Inherited is the work of another owner that a flow continues.
type Inherited struct {
	Noted []ledger.Fingerprint // by shard: the rules noted for the partition
	// Shards before the offset level are moved there by rules: those by which the other shards were moved
	// there.
	Level int64
	Rules ledger.Fingerprint
}

// Inherit determines which work was started by which rules, from the shards' positions and their stored texts.
func (all *Books) Inherit(at ledger.Positions, states []ledger.State) (Inherited, error) {
	in := Inherited{Noted: make([]ledger.Fingerprint, len(at))}
	furthest := 0
	for i, p := range at {
		what := fmt.Sprintf("the sweep of %s at %v%s", all.Field, p, shards.On(i, ledger.Shards(len(at))))
		if err := all.Learn(p.Rules, states[i].Rules, what); err != nil {
			return in, err
		}
		in.Noted[i], _ = ledger.ParseFingerprint(states[i].Rules[all.Field]) // an unreadable fingerprint is noted again
		if p.To > at[furthest].To || p.To == at[furthest].To && p.Sweeping() {
			furthest = i
		}
	}
	by := at[furthest].Rules
	if !at[furthest].Sweeping() {
		by = in.Noted[furthest]
	}
	if at.Lowest() < at[furthest].To && by != 0 && by != all.Own.ID() {
		what := fmt.Sprintf("what lies between %d and %d of %s, which not every shard has,", at.Lowest(), at[furthest].To, all.Field)
		if err := all.Learn(by, states[furthest].Rules, what); err != nil {
			return in, err
		}
		in.Level, in.Rules = at[furthest].To, by
	}
	return in, nil
}
