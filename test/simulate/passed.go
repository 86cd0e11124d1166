package simulate

// What is kept of a window's seals says which events aren't in it, in every moment: those that came while it
// was final, whatever revision it is by now.

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/internal/ranking"
)

// passedBy counts shards of windows that were reopened and lack what came while they were final.
const passedBy = "an event that a window lacks which was reopened"

// instants are the ledgers of two instants, by field: the events that the second counts and the first
// doesn't.
type instants struct{ from, to map[string]string }

func (b *instants) has(field string, offset int64, hash uint64) bool {
	return in(cmp.Or(b.to[field], "0"), offset, hash) && !in(cmp.Or(b.from[field], "0"), offset, hash)
}

// saysWhatPassed holds that of the events that a shard counts by now exactly those came while a window was
// final of which the record of its seals says so.
func (sh *shard) saysWhatPassed() {
	w := sh.w
	if !w.setup.Seal || sh.on.damaged || w.failed != "" {
		return
	}
	listed, records := sh.hash(windowsKey), sh.hash("final")
	for _, name := range slices.Sorted(maps.Keys(records)) {
		if strings.HasPrefix(name, "@") || listed[name] == "" || w.over(listed[name]) {
			continue
		}
		record, err := ranking.ParseSealRecord(records[name])
		if err != nil {
			w.failf("the record of %s%s is %q: %v", name, sh.named(), records[name], err)
			return
		}
		ledger := func(at time.Time) map[string]string { return sh.sealLedger(records, name, at) }
		var passed []instants
		for _, p := range record.Passed {
			passed = append(passed, instants{ledger(p.From), ledger(p.To)})
		}
		if sh.sealed.final[name] != nil {
			passed = append(passed, instants{ledger(record.At), sh.hash(ledgerKey)})
		}
		sh.compares(name, records[name], passed)
	}
}

// compares holds what passed a window by, as its record says, against the pieces that did.
func (sh *shard) compares(name, record string, passed []instants) {
	w, is, missing := sh.w, sh.ledger(), false
	w.records(func(partition int, r *stored) {
		user, ok := userOf(r.value)
		if hash := hashOf(user); ok && w.shardOf(user) == sh && in(cmp.Or(is[partition], "0"), r.offset, hash) {
			field := w.kafka.partitions[partition].field()
			said := slices.ContainsFunc(passed, func(b instants) bool { return b.has(field, r.offset, hash) })
			came := slices.ContainsFunc(sh.sealed.refused[name], func(s span) bool { return s.has(partition, r, hash) })
			missing = missing || came && sh.sealed.final[name] == nil
			if said != came {
				w.failf("the record of a window's seals is wrong: offset %d of partition %d came while %s%s was final: %v; by %q: %v",
					r.offset, partition, name, sh.named(), came, record, said)
			}
		}
	})
	if missing {
		w.count(passedBy)
	}
}

// sealLedger is the one of an instant that a window's record names.
func (sh *shard) sealLedger(records map[string]string, name string, at time.Time) map[string]string {
	var kept []string
	text := records["@"+strconv.FormatInt(at.UnixMicro(), 10)]
	if err := json.Unmarshal([]byte(text), &kept); err != nil {
		sh.w.failf("a ledger of the seals of %s%s is %q: %v", name, sh.named(), text, err)
	}
	all := map[string]string{}
	for i := 0; i+1 < len(kept); i += 2 {
		all[kept[i]] = kept[i+1]
	}
	return all
}
