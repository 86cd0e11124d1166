package simulate

// This file checks the record of a window's seals at every moment: it must tell which events are not in the
// window because they arrived while it was final, whatever its revision is now.

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

// passedBy counts shards of reopened windows that lack events which arrived while they were final.
const passedBy = "an event that a window lacks which was reopened"

// instants holds the ledgers of two instants by field. It denotes the events that the second ledger counts
// and the first does not.
type instants struct{ from, to map[string]string }

func (b *instants) has(field string, offset int64, hash uint64) bool {
	return in(cmp.Or(b.to[field], "0"), offset, hash) && !in(cmp.Or(b.from[field], "0"), offset, hash)
}

// saysWhatPassed checks, for all events that the shard counts now, that the record of a window's seals
// lists exactly those that arrived while the window was final.
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

// compares compares the events that passed a window according to its record with those in the pieces that
// passed it.
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

// sealLedger returns the ledger of an instant that a window's record names.
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
