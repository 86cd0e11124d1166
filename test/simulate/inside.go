package simulate

// This file tracks the state of a shard by the commands that it executes.

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/standings/standings/internal/ingest/fold"
	"github.com/standings/standings/test/simulate/redissim"
)

// executed is called after every command that a shard has executed, and receives the result.
func (w *world) executed(c *call, r redissim.Result) {
	w.bounded(c, r)
	defer w.finals(c)
	c.shard.noteAdded(c, r)
	if c.kind == drops {
		w.drops(c, r)
		return
	}
	if c.kind == "swap" {
		w.swapped(c, r)
		return
	}
	if c.kind == "rebuild" && len(w.setup.Books) > 0 && answered(r) == "applied" {
		w.shadowed(c)
	}
	if c.kind == "read" {
		w.readers[c.from.id-firstReader].note(keys(c.command.Args)[5])
		return
	}
	if c.kind == "state" && w.isApart() {
		w.count(apart)
	}
	if c.kind == "ban" && answered(r) == "done" {
		c.shard.bansDone(c)
		c.shard.looks(c)
	}
	if c.kind != "apply" && c.kind != "begin" {
		return
	}
	if r.Torn() && c.kind == "begin" {
		return // its writes are repeated
	}
	if r.Torn() {
		// Only the ledger tells: if the script left no mark, it has damaged nothing that could be noticed.
		c.shard.tears()
		w.tellf("the ledger is %s now%s", positions(c.shard.ledger()), c.shard.named())
		return
	}
	list, _ := r.Reply.([]any)
	if len(list) == 0 {
		return
	}
	if c.kind == "apply" {
		w.notesHeard(c, list)
	}
	w.count(fmt.Sprint(c.kind, " answers ", list[0]))
	if list[0] != "applied" {
		return
	}
	if c.kind == "begin" {
		c.shard.begun(c)
	} else {
		c.shard.applied(c)
		c.shard.knows(c)
		c.shard.looks(c)
	}
	c.shard.on.keep()
}

// unheard identifies a piece that a process sent, as text.
type unheard struct {
	from  *process
	piece string
}

// notesHeard records whether the sender of an applied piece learns that it was applied. It does not if it
// has given up the call:
//
//	a process sends a piece, and gets no answer for a while
//	its call times out, and it sends the piece again
//	Redis executes the first call
//	the process's generation ends before Redis answers the second call
//
// The process then counts none of the piece's events, and its successor counts them as repeated.
func (w *world) notesHeard(c *call, answer []any) {
	of := unheard{c.from, c.what}
	_, _, next := piece(c.command.Args)
	isIn := answer[0] == "applied" || answer[0] == "moved" && len(answer) > 1 && answer[1] == next
	switch {
	case isIn && c.command.Waited():
		delete(w.unheard, of)
	case answer[0] == "applied":
		w.unheard[of] = true
		w.count(neverHeard)
	}
}

// neverHeard counts such pieces.
const neverHeard = "a piece is applied after its sender gave up the call"

// answered returns the first word of an answer.
func answered(r redissim.Result) string {
	if list, ok := r.Reply.([]any); ok && len(list) > 0 && !r.Torn() {
		return fmt.Sprint(list[0])
	}
	return ""
}

// tears records the partitions whose ledgers are torn.
func (sh *shard) tears() {
	clear(sh.torn) // a swap may have repaired earlier ones before it died
	for field, position := range sh.hash(ledgerKey) {
		if strings.HasPrefix(position, "torn:") {
			sh.on.damaged, sh.torn[field] = true, true
		}
	}
}

// applied records a piece that was applied.
func (sh *shard) applied(c *call) {
	field, _, next := piece(c.command.Args)
	sh.counted[sh.w.kafka.partitions[sh.w.idOf(field)].topic] = true
	if len(windowKeys(c.command.Args)) == 0 && len(sh.w.shards) > 1 && !c.inSweep() {
		sh.w.count(lagging)
	}
	sh.mended(field, c.command.Args)
	sh.passes(c)
	sh.w.goesOn(c)
	sh.begins(c)
	if !strings.Contains(next, "@") {
		sh.reached(field, next)
	}
}

// mended checks that a piece does not hide damage: it must neither count on a torn ledger nor recreate a
// listed board that was evicted.
func (sh *shard) mended(field string, args []string) {
	if sh.torn[field] {
		sh.w.failf("a piece counts on the torn ledger of %s%s", field, sh.named())
	}
	if sh.evicted[sh.key(windowsKey)] {
		return // it is no longer known which boards existed
	}
	for _, key := range windowKeys(args) {
		if sh.evicted[key] && sh.exists(strings.TrimPrefix(key, sh.tag)) {
			sh.w.failf("a piece begins %s anew, which was evicted", key)
		}
	}
}

// reached records the highest position of a partition's ledger.
func (sh *shard) reached(field, position string) {
	p := sh.w.idOf(field)
	at, err := strconv.ParseInt(position, 10, 64)
	if err != nil {
		sh.w.failf("the ledger of %d stands at %q%s", p, position, sh.named())
		return
	}
	sh.furthest[p], sh.moved[p] = max(sh.furthest[p], at), max(sh.moved[p], at)
}

// committedUpTo checks that no offset is committed before it counts in every shard.
func (w *world) committedUpTo(partition int, offset int64) {
	for _, sh := range w.shards {
		if offset > sh.furthest[partition] {
			w.failf("offset %d of partition %d is committed, and its ledger never stood past %d%s", offset, partition, sh.furthest[partition], sh.named())
		}
	}
}

// parse parses a position: 480, or 120..480@hash#rules.
func parse(position string) (from, to int64, hash uint64) {
	bounds, h, sweeping := strings.Cut(position, "@")
	first, last, _ := strings.Cut(bounds, "..")
	from, _ = strconv.ParseInt(first, 10, 64)
	to = from
	if sweeping {
		to, _ = strconv.ParseInt(last, 10, 64)
		h, _, _ = strings.Cut(h, "#")
		hash, _ = strconv.ParseUint(h, 16, 64)
	}
	return from, to, hash
}

func hashOf(user string) uint64 { return fold.Hash([]byte(user)) }

// positions formats a map in key order.
func positions[V any](all map[int]V) string {
	var said []string
	for _, p := range slices.Sorted(maps.Keys(all)) {
		said = append(said, fmt.Sprintf("%d: %v", p, all[p]))
	}
	if len(said) == 0 {
		return "empty"
	}
	return strings.Join(said, ", ")
}
