package harness

// This file determines which events are in final windows: an event counts if the ledger of the window's
// seal has it, and the window was not final before when the event arrived.

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/standings/standings/test/oracle"
)

// isFinal reports whether a window is listed as final.
func isFinal(listing string) bool {
	l, err := oracle.ReadListing(listing)
	return err == nil && l.Final > 0
}

// seals holds the final windows of each shard, by their names in the listing.
type seals []map[string]seal

// seal is the ledger of a window's seal, and the ledgers of its earlier seals and reopenings.
type seal struct {
	ledger keptLedger
	passed []between
}

// keptLedger holds positions by partition.
type keptLedger map[string]string

// between denotes the events that the ledger to counts and the earlier ledger from does not.
type between struct{ from, to keptLedger }

// TakeSeals reads which windows are final, for the oracle: records expected from now on do not count in
// windows that were sealed before them. No window may be sealed or reopened meanwhile.
func (p *Place) TakeSeals(t testing.TB) {
	t.Helper()
	listed, err := p.hashes(t.Context(), "windows")
	if err != nil {
		t.Fatal(err)
	}
	records, err := p.hashes(t.Context(), "final")
	if err != nil {
		t.Fatal(err)
	}
	all := make(seals, len(listed))
	for shard := range listed {
		all[shard] = map[string]seal{}
		for name, listing := range listed[shard] {
			if !isFinal(listing) {
				continue
			}
			if all[shard][name], err = sealedBy(records[shard], name); err != nil {
				t.Errorf("shard %d: %v", shard, err)
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seals = all
}

// sealedBy returns the seal of a window from a shard's records of final windows.
func sealedBy(records map[string]string, name string) (s seal, err error) {
	var record struct {
		At       int64      `json:"at"`
		Revision int64      `json:"revision"`
		Passed   [][2]int64 `json:"passed"` // pairs of instants: events between them did not count in the window
	}
	if err := json.Unmarshal([]byte(records[name]), &record); err != nil || record.Revision < 1 {
		return s, fmt.Errorf("%s is final, and what is kept of its seal is %q", name, records[name])
	}
	if s.ledger, err = ledgerOf(records, name, record.At); err != nil {
		return s, err
	}
	for _, instants := range record.Passed {
		var b between
		if b.from, err = ledgerOf(records, name, instants[0]); err != nil {
			return s, err
		}
		if b.to, err = ledgerOf(records, name, instants[1]); err != nil {
			return s, err
		}
		s.passed = append(s.passed, b)
	}
	return s, nil
}

// ledgerOf returns the ledger of an instant that a window's record names.
func ledgerOf(records map[string]string, name string, instant int64) (keptLedger, error) {
	var fields []string
	kept := records[fmt.Sprint("@", instant)]
	if err := json.Unmarshal([]byte(kept), &fields); err != nil {
		return nil, fmt.Errorf("a ledger of the seals of %s is %q: %w", name, kept, err)
	}
	if len(fields)%2 != 0 {
		return nil, fmt.Errorf("a ledger of the seals of %s is %q", name, kept)
	}
	of := keptLedger{}
	for i := 0; i < len(fields); i += 2 {
		of[fields[i]] = fields[i+1]
	}
	return of, nil
}

// has reports whether an event is in the window, given its partition, offset and member's hash.
func (s *seal) has(field string, offset int64, hash uint64) bool {
	for _, p := range s.passed {
		if counts(p.to[field], offset, hash) && !counts(p.from[field], offset, hash) {
			return false
		}
	}
	return counts(s.ledger[field], offset, hash)
}

// Final reports whether a window is final in all shards.
func (p *Place) Final(t testing.TB, name string) bool {
	t.Helper()
	all, err := p.hashes(t.Context(), "windows")
	if err != nil {
		t.Fatal(err)
	}
	for _, listed := range all {
		if !isFinal(listed[name]) {
			return false
		}
	}
	return true
}

// without returns the final windows that were sealed before an event; nil if there are none or the value is
// not an event.
func (p *Place) without(at oracle.At, value []byte) map[string]bool {
	p.mu.Lock()
	all := p.seals
	p.mu.Unlock()
	var event struct {
		Member string `json:"user_id"`
	}
	if all == nil || json.Unmarshal(value, &event) != nil {
		return nil
	}
	windows := map[string]bool{}
	field, hash := fmt.Sprintf("%s/%d", p.Topic, at.Partition), xxhash.Sum64String(event.Member)
	for name, seal := range all[p.ShardOf(event.Member)] {
		if !seal.has(field, at.Offset, hash) {
			windows[name] = true
		}
	}
	return windows
}

// counts reports whether a position counts an event, given its offset and member's hash. An empty position
// counts none.
func counts(position string, offset int64, hash uint64) bool {
	from, rest, sweeps := strings.Cut(position, "..")
	first, err := strconv.ParseInt(from, 10, 64)
	if err != nil || offset < first || !sweeps {
		return err == nil && offset < first
	}
	to, rest, _ := strings.Cut(rest, "@")
	below, _, _ := strings.Cut(rest, "#")
	last, err1 := strconv.ParseInt(to, 10, 64)
	least, err2 := strconv.ParseUint(below, 16, 64)
	return err1 == nil && err2 == nil && offset < last && hash < least
}
