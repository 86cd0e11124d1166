package simulate

// This file checks final windows at every moment. From its seal on, no byte of a final window may change
// until it is reopened, or Redis goes back to before the seal. According to the seal's ledger, the window
// must contain everything that was in the log before the window closed.

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/test/oracle"
)

// sealedOf is the state of a shard's final windows. It goes back with the shard.
type sealedOf struct {
	final     map[string]*finalWindow // by name in the listing
	was       map[string]bool         // windows that were final and no longer are
	refused   map[string][]span       // pieces that arrived while a window was final
	revisions map[string]int64
}

// finalWindow is immutable.
type finalWindow struct {
	revision int64
	members  map[string]uint64 // scores of the members, hidden or not
}

// span denotes the events that a piece counts: those of a partition that the position next counts and the
// position expected does not.
type span struct {
	partition      int
	expected, next string
}

func newSealedOf() sealedOf {
	return sealedOf{map[string]*finalWindow{}, map[string]bool{}, map[string][]span{}, map[string]int64{}}
}

func (s *sealedOf) clone() sealedOf {
	c := sealedOf{maps.Clone(s.final), maps.Clone(s.was), map[string][]span{}, maps.Clone(s.revisions)}
	for name, all := range s.refused {
		c.refused[name] = slices.Clip(all)
	}
	return c
}

// in reports whether a position counts an event.
func in(position string, offset int64, hash uint64) bool {
	from, to, at := parse(position)
	return offset < from || offset < to && hash < at
}

func (s *span) has(partition int, r *stored, hash uint64) bool {
	return s.partition == partition && in(s.next, r.offset, hash) && !in(s.expected, r.offset, hash)
}

// passes records the windows in which a piece does not count because they are final.
func (sh *shard) passes(c *call) {
	if !sh.w.setup.Seal {
		return
	}
	field, expected, next := piece(c.command.Args)
	one := span{sh.w.idOf(field), expected, next}
	for name := range sh.sealed.final {
		sh.sealed.refused[name] = append(sh.sealed.refused[name], one)
	}
}

// finals checks the final windows after a call.
func (w *world) finals(c *call) {
	if !w.setup.Seal || c.shard == nil || w.failed != "" {
		return
	}
	if w.final.ever == nil {
		w.final.ever = map[string]bool{}
	}
	for _, sh := range c.shard.on.shards {
		sh.finalAfter(c)
	}
	if c.kind != "seal" && c.kind != reopens {
		return
	}
	for _, sh := range c.shard.on.shards {
		sh.saysWhatPassed()
	}
	if w.failed == "" {
		c.shard.on.keep()
	}
}

func (sh *shard) finalAfter(c *call) {
	w := sh.w
	if sh.on.damaged && (sh.evicted[sh.key(windowsKey)] || sh.evicted[sh.key("final")]) {
		return
	}
	listed := sh.hash(windowsKey)
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		revision, was := revisionOf(listed[name]), sh.sealed.final[name]
		switch {
		case w.over(listed[name]):
			continue
		case revision > 0 && was == nil:
			sh.sealedBy(c, name, listed[name], revision)
		case revision > 0 && revision > was.revision && c.kind == "seal" && len(w.shards) > 1:
			// This shard went back to before the window was reopened, and the others did not. The content
			// stays, and the revision becomes that of the other shards.
			w.count(lostReopening)
			sh.sealed.final[name] = &finalWindow{revision, was.members}
			sh.sealed.revisions[name] = revision
			sh.keepsLedger(name, revision)
		case revision > 0 && revision != was.revision:
			w.failf("a final window is of another revision: %s%s is %q, and was %d, by %s", name, sh.named(), listed[name], was.revision, c.what)
		case revision == 0 && was != nil && c.kind != reopens:
			w.failf("a window that was final isn't any more: %s%s is %q, by %s", name, sh.named(), listed[name], c.what)
		case revision == 0 && was != nil:
			w.tellf("%s isn't final any more%s", name, sh.named())
			delete(sh.sealed.final, name)
			sh.sealed.was[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sh.sealed.final)) {
		if listed[name] == "" {
			w.failf("a final window isn't listed any more: %s%s, by %s", name, sh.named(), c.what)
			return
		}
		if w.over(listed[name]) {
			continue
		}
		w.final.ever[name] = true
		if !sh.on.damaged {
			sh.unchanged(c, name)
		}
	}
}

// unchanged checks that a final window is as it was sealed, except for members who were banned, unbanned or
// erased.
func (sh *shard) unchanged(c *call, name string) {
	was, is := sh.sealed.final[name].members, sh.withHidden(name)
	board, _, _ := strings.Cut(name, ":")
	for member, score := range is {
		if was[member] != score || was[member] == 0 && !hasKey(was, member) {
			sh.w.failf("a final window has changed: %q in %s%s, by %s", member, name, sh.named(), c.what)
		}
	}
	for member := range was {
		_, there := is[member]
		fields := sh.fields()
		erased := strings.HasPrefix(fields[banned{"", member}], "eras") || strings.HasPrefix(fields[banned{board, member}], "eras")
		if !there && !erased {
			sh.w.failf("a final window has changed: %q is gone from %s%s, by %s", member, name, sh.named(), c.what)
		}
	}
}

func hasKey[V any](all map[string]V, key string) bool { _, ok := all[key]; return ok }

// withHidden returns the members of a window on the shard, shown and hidden.
func (sh *shard) withHidden(name string) map[string]uint64 {
	all := map[string]uint64{}
	maps.Copy(all, sh.zset(name))
	maps.Copy(all, sh.zset(name+hiddenSuffix))
	delete(all, "")
	return all
}

// sealedBy checks that a window was sealed at a permitted time: after its end by all clocks, and once
// everything that was in the log by then counts.
func (sh *shard) sealedBy(c *call, name, listing string, revision int64) {
	w := sh.w
	if c.kind != "seal" {
		w.failf("a window is final that nobody has sealed: %s%s is %q, by %s", name, sh.named(), listing, c.what)
		return
	}
	at, ok := closesAt(name, listing)
	switch {
	case !ok:
		w.failf("a final window is listed as %q", listing)
	case w.now().UnixMilli() <= at:
		w.failf("a window is sealed before its time by Redis's clock: %s%s", name, sh.named())
	case c.from.own().UnixMilli() <= at:
		w.failf("a window is sealed before its time by the clock of who seals it: %s%s, by process %d", name, sh.named(), c.from.id)
	}
	ledgers := sh.ledger()
	sh.keepsLedger(name, revision)
	for _, p := range w.kafka.partitions {
		if p.misled > 0 || p.topic != topic && w.setup.Later != fromTheBeginning {
			continue // its leader had reported a wrong end, or the sealing process may not know the topic yet
		}
		p.visible(0, func(r *stored) {
			if user, ok := userOf(r.value); ok && r.sent <= at && r.offset >= sh.starts[p.id] && w.shardOf(user) == sh && !in(ledgers[p.id], r.offset, hashOf(user)) {
				w.failf("a window is sealed without what was in the log in time: %s%s, at %q of partition %d, offset %d", name, sh.named(), ledgers[p.id], p.id, r.offset)
			}
		})
	}
	w.tellf("%s is final%s, revision %d", name, sh.named(), revision)
	w.count(sealed)
	if before := sh.sealed.revisions[name]; before > 0 {
		w.count(sealedAgain)
		if revision <= before {
			w.failf("a window that was reopened is final as revision %d, and was as %d: %s%s", revision, before, name, sh.named())
		}
	} else if w.final.ever[name] && len(w.shards) == 1 {
		w.count(sealedAfresh)
	}
	sh.sealed.final[name] = &finalWindow{revision, sh.withHidden(name)}
	sh.sealed.revisions[name] = revision
	if slices.ContainsFunc(w.shards, func(o *shard) bool { return o.sealed.final[name] == nil }) {
		w.count(apartFinal)
	}
}

// keepsLedger checks that the seal's record contains the ledger at the time of the seal.
func (sh *shard) keepsLedger(name string, revision int64) {
	records := sh.hash("final")
	var record struct{ At, Revision int64 }
	var kept []string
	if json.Unmarshal([]byte(records[name]), &record) != nil || record.Revision != revision || json.Unmarshal([]byte(records[fmt.Sprint("@", record.At)]), &kept) != nil {
		sh.w.failf("a window is final, revision %d, and its record is %q%s: %s", revision, records[name], sh.named(), name)
		return
	}
	was := map[string]string{}
	for i := 0; i+1 < len(kept); i += 2 {
		was[kept[i]] = kept[i+1]
	}
	if is := sh.hash(ledgerKey); !maps.Equal(was, is) {
		sh.w.failf("a window is sealed by another ledger than there is: %v, and %v%s: %s", was, is, sh.named(), name)
	}
}

// rebuiltFinal records the windows that a rebuild replaced: they contain all of their events, including
// those refused before.
func (sh *shard) rebuiltFinal(c *call) {
	w := sh.w
	if !w.setup.Seal {
		return
	}
	all := keys(c.command.Args)[firstSwapped:]
	listed := sh.hash(windowsKey)
	for i := 0; i+3 < len(all); i += 4 {
		name := strings.TrimPrefix(all[i], sh.tag)
		delete(sh.sealed.refused, name)
		if sh.sealed.final[name] == nil {
			continue
		}
		w.count(rebuiltLost)
		if w.counts[evict] == 0 {
			w.failf("a rebuild has replaced a final window that wasn't lost: %s", name)
		}
		if revision := revisionOf(listed[name]); revision > 0 {
			w.failf("a final window was lost, and what was rebuilt is final still, revision %d: %s", revision, name)
		}
		delete(sh.sealed.final, name)
	}
}

// firstSwapped is the index of the first window key of swap.lua.
const firstSwapped = 13

// finalSets returns the keys of final windows on a master.
func (m *master) finalSets() (all []string) {
	for _, sh := range m.shards {
		for name := range sh.sealed.final {
			if sh.exists(name) {
				all = append(all, sh.key(name))
			}
		}
	}
	slices.Sort(all)
	return all
}

// allFinal names the windows that could be final and are not.
func (w *world) allFinal() string {
	if !w.setup.Seal || !w.ending {
		return ""
	}
	const margin = 12 * time.Hour // maximum difference between clocks
	var left []string
	for _, sh := range w.shards {
		if !sh.exists(schemaKey) {
			continue // Redis has evicted it: sealing is refused until the operator restores a backup, which operate does
		}
		for name, text := range sh.hash(windowsKey) {
			at, ok := closesAt(name, text)
			if ok && !w.over(text) && !sh.lacks(name, text) && sh.sealed.final[name] == nil && at < min(w.now().UnixMilli(), time.Now().Add(w.final.ahead).UnixMilli())-margin.Milliseconds() {
				left = append(left, name+sh.named())
			}
		}
	}
	if len(left) == 0 {
		return ""
	}
	slices.Sort(left)
	return fmt.Sprintf("not final: %s; ", strings.Join(left, ", "))
}

// --- input for the oracle -----------------------------------------------------------------

// without returns the windows in which a record does not count because they were final when it came.
func (w *world) without(partition int, r *stored) map[string]bool {
	user, ok := userOf(r.value)
	if !w.setup.Seal || !ok {
		return nil
	}
	hash, sh := hashOf(user), w.shardOf(user)
	var all map[string]bool
	for name, spans := range sh.sealed.refused {
		if slices.ContainsFunc(spans, func(s span) bool { return s.has(partition, r, hash) }) {
			if all == nil {
				all = map[string]bool{}
			}
			all[name] = true
		}
	}
	return all
}

// isIn reports whether a record belongs to a window.
func (w *world) isIn(partition int, r *stored, name string) bool {
	o := w.oracle()
	o.Add(recordOf(partition, r, false))
	want, err := o.Expected(w.now())
	return err == nil && want.Windows[name] != ""
}

// openListing returns the listing as if the window had never been sealed; empty for a window without
// members on the shard, which is listed only because of its seal.
func openListing(text string) string {
	l, err := oracle.ReadListing(text)
	if err != nil || l.Sets == "none" {
		return ""
	}
	l.Final = 0
	return l.Text()
}

// revisionOf returns the revision of a final window from its listing; 0 if it is not final.
func revisionOf(text string) int64 {
	l, _ := oracle.ReadListing(text)
	return l.Final
}

// noteFinals counts the events that final windows refused.
func (w *world) noteFinals() {
	if !w.setup.Seal {
		return
	}
	w.records(func(p int, r *stored) {
		n := 0
		without := w.without(p, r)
		for name := range without {
			if w.isIn(p, r, name) {
				n++
			}
		}
		if n == 0 {
			return
		}
		w.count(refusedFinal)
		o := w.oracle()
		record := recordOf(p, r, false)
		record.Without = without
		if o.Add(record); o.Counts().Late > 0 {
			w.count(lateForAll)
		}
	})
}
