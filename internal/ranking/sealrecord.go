package ranking

// A shard's records of the windows that were ever sealed, and the ledgers of the instants that the records
// name (lua/record.lua).

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// SealRecord is a shard's record of a window that was ever sealed.
type SealRecord struct {
	Revision int64
	At       time.Time // when it was sealed, by the shard's clock
	Passed   []Passed  // events that came while an earlier seal was in force
	// Reopened is set if the window was reopened. Until that time no job seals it by itself.
	Reopened time.Time
	// Why is the reason for the last reopening, of this revision or the one before; empty if there was
	// none.
	Why string
}

// Next returns the revision that a seal would have now.
func (r SealRecord) Next() int64 {
	if !r.Reopened.IsZero() {
		return r.Revision + 1
	}
	return r.Revision
}

// SealRecords returns the records that the shard has of some windows, by their names in the listing.
func (s *Store) SealRecords(ctx context.Context, windows []string) (map[string]SealRecord, error) {
	all := map[string]SealRecord{}
	for names := range slices.Chunk(windows, listedAtOnce) {
		texts, err := s.HashFields(ctx, s.keys.Final(), names)
		if err != nil {
			return nil, fmt.Errorf("read the final windows under %q: %w", s.prefix, err)
		}
		for i, text := range texts {
			if text == "" {
				continue
			}
			r, err := ParseSealRecord(text)
			if err != nil {
				return nil, Faultf("%q is no record of the final window %s", Clip(text), names[i])
			}
			all[names[i]] = r
		}
	}
	return all, nil
}

// sealText is the JSON of a record, with sorted keys (lua/record.lua).
type sealText struct {
	At       int64      `json:"at"` // Unix µs
	Passed   [][2]int64 `json:"passed,omitempty"`
	Reopened *int64     `json:"reopened,omitempty"` // Unix ms
	Revision int64      `json:"revision"`
	Why      string     `json:"why,omitempty"`
}

// ParseSealRecord parses a record that seal.lua, unseal.lua or swap.lua wrote.
func ParseSealRecord(text string) (r SealRecord, err error) {
	t := sealText{At: -1, Revision: -1}
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return r, err
	}
	if t.At < 0 || t.Revision < 0 {
		return r, errors.New("it has no revision, or no instant")
	}
	r = SealRecord{Revision: t.Revision, At: time.UnixMicro(t.At), Why: t.Why}
	for _, p := range t.Passed {
		r.Passed = append(r.Passed, Passed{time.UnixMicro(p[0]), time.UnixMicro(p[1])})
	}
	if t.Reopened != nil {
		r.Reopened = time.UnixMilli(*t.Reopened)
	}
	return r, nil
}

// Text returns the record in the form that ParseSealRecord parses.
func (r SealRecord) Text() string {
	t := sealText{At: r.At.UnixMicro(), Revision: r.Revision, Why: r.Why}
	for _, p := range r.Passed {
		t.Passed = append(t.Passed, [2]int64{p.From.UnixMicro(), p.To.UnixMicro()})
	}
	if ms := r.Reopened.UnixMilli(); !r.Reopened.IsZero() {
		t.Reopened = &ms
	}
	text, err := json.Marshal(t)
	if err != nil {
		panic(err) // texts and integers only
	}
	return string(text)
}

// SealLedgers returns the ledgers at the instants of seals, by instant. It leaves out those that the shard
// doesn't have.
func (s *Store) SealLedgers(ctx context.Context, at []time.Time) (map[time.Time]map[string]string, error) {
	all := map[time.Time]map[string]string{}
	for some := range slices.Chunk(at, listedAtOnce) {
		names := make([]string, len(some))
		for i, t := range some {
			names[i] = sealedLedger + strconv.FormatInt(t.UnixMicro(), 10)
		}
		texts, err := s.HashFields(ctx, s.keys.Final(), names)
		if err != nil {
			return nil, fmt.Errorf("read the ledgers of final windows under %q: %w", s.prefix, err)
		}
		for i, text := range texts {
			var words []string // in the form of HGETALL
			if text == "" {
				continue
			}
			if err := json.Unmarshal([]byte(text), &words); err != nil || len(words)%2 != 0 {
				return nil, Faultf("%q is no ledger of final windows", Clip(text))
			}
			counted := map[string]string{}
			for w := 0; w < len(words); w += 2 {
				counted[words[w]] = words[w+1]
			}
			all[some[i]] = counted
		}
	}
	return all, nil
}

// sealingKept is how long an unused ledger is kept: a seal that is in progress may have written it.
const sealingKept = time.Hour

// forgetSealings removes the ledgers that no record refers to.
func (s *Store) forgetSealings(ctx context.Context) error {
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	used, ledgers := map[time.Time]bool{}, map[string]time.Time{}
	for page, err := range s.Pages(ctx, s.keys.Final(), 0) {
		if err != nil {
			return err
		}
		for i := 0; i+1 < len(page); i += 2 {
			if instant, ok := strings.CutPrefix(page[i], sealedLedger); ok {
				if us, err := strconv.ParseInt(instant, 10, 64); err == nil && now.Sub(time.UnixMicro(us)) > sealingKept {
					ledgers[page[i]] = time.UnixMicro(us)
				}
				continue
			}
			r, err := ParseSealRecord(page[i+1])
			if err != nil {
				return nil // unknown references; other readers report the record
			}
			used[r.At] = true
			for _, p := range r.Passed {
				used[p.From], used[p.To] = true, true
			}
		}
	}
	var unused []string
	for field, at := range ledgers {
		if !used[at] {
			unused = append(unused, field)
		}
	}
	if len(unused) == 0 {
		return nil
	}
	return s.RemoveFields(ctx, s.keys.Final(), unused...)
}

// sealedLedger is the prefix of the fields that hold ledgers in the hash of final windows. No board's name
// has it.
const sealedLedger = "@"

// Events that are missing in a reopened window: they came while it was final.

// Passed are events that a window lacks although the ledger counts them: the ledger of the instant To
// counts them, and that of From doesn't (SealLedgers). A rebuild adds them to the window.
type Passed struct {
	From time.Time // when the window was sealed
	To   time.Time // when it was reopened
}

// Unsaid returns the Passed for unknown events (Seal.Unknown): no ledger has the instant 0.
func Unsaid(until time.Time) Passed { return Passed{time.UnixMicro(0), until} }

// Seal is a shard's record of a window that was ever final.
type Seal struct {
	Revision int64             // 0 if the window was never final
	Final    bool              // the window is final now
	At       time.Time         // when it was sealed, by Redis's clock; zero if the shard doesn't know
	Ledger   map[string]string // the ledger at that time: which events are in the window; nil if the shard doesn't know
	Reopened string            // why the window was reopened, if it was
	// Passed are events that the ledger counts but the window lacks, because it was final when they were
	// applied.
	Passed []PassedBetween
	// Unknown reports that the ledgers of some of those events are lost.
	Unknown bool
}

// PassedBetween are the events that the ledger To counts and the earlier ledger From doesn't.
type PassedBetween struct{ From, To map[string]string }

// SealOf reads a shard's record of a window, by its name in the listing. It makes several calls: a window
// that is sealed between them may look as if it weren't final yet, or as if it had no record.
func (s *Store) SealOf(ctx context.Context, window string) (Seal, error) {
	seal, err := s.sealOf(ctx, window)
	if err != nil {
		return Seal{}, fmt.Errorf("read the seal of %s: %w", window, err)
	}
	return seal, nil
}

func (s *Store) sealOf(ctx context.Context, window string) (seal Seal, err error) {
	listing, err := s.HashFields(ctx, s.keys.Windows(), []string{window})
	if err != nil {
		return seal, err
	}
	if l, err := ParseListing(window, listing[0]); err == nil {
		seal.Revision, seal.Final = l.Final, l.Final > 0
	}
	record, err := s.HashFields(ctx, s.keys.Final(), []string{window})
	if err != nil {
		return seal, err
	}
	if record[0] == "" {
		return seal, nil
	}
	kept, err := ParseSealRecord(record[0])
	if err != nil {
		return seal, Faultf("%q is no record of the final window %s", Clip(record[0]), window)
	}
	wanted := []time.Time{kept.At}
	for _, p := range kept.Passed {
		wanted = append(wanted, p.From, p.To)
	}
	ledgers, err := s.SealLedgers(ctx, wanted)
	if err != nil {
		return seal, err
	}
	for _, p := range kept.Passed {
		from, to := ledgers[p.From], ledgers[p.To]
		if from == nil || to == nil {
			seal.Unknown = true
			continue
		}
		seal.Passed = append(seal.Passed, PassedBetween{from, to})
	}
	if seal.Final {
		seal.At, seal.Ledger = kept.At, ledgers[kept.At]
		if seal.Ledger == nil {
			seal.At = time.Time{}
		}
		return seal, nil
	}
	seal.Revision = kept.Revision
	if !kept.Reopened.IsZero() {
		seal.Reopened = kept.Why
	}
	return seal, nil
}
