package ranking

import (
	"context"
	"fmt"
	"time"
)

// Seal is what a shard keeps of a window that was ever final.
type Seal struct {
	Revision int64             // 0: it never was
	Final    bool              // it is so now
	At       time.Time         // of the seal, by Redis's clock; zero where nothing is kept of it
	Ledger   map[string]string // then: which events are in the window; nil likewise
	Reopened string            // why the seal was taken back, where it was
	// Passed are events that aren't in the window although the ledger counts them, as it was final then.
	Passed []PassedBetween
	// Unknown: of some of those the ledgers are lost.
	Unknown bool
}

// PassedBetween are those that a ledger counts and an earlier one doesn't.
type PassedBetween struct{ From, To map[string]string }

// SealOf reads what a shard keeps of a window, by its name in the listing. Several calls: what is sealed
// between them may look as if it weren't yet, or as if nothing were kept of it.
func (s *Store) SealOf(ctx context.Context, window string) (Seal, error) {
	seal, err := s.sealOf(ctx, window)
	if err != nil {
		return Seal{}, fmt.Errorf("read the seal of %s: %w", window, err)
	}
	return seal, nil
}

func (s *Store) sealOf(ctx context.Context, window string) (seal Seal, err error) {
	listing, err := s.fields(ctx, s.keys.Windows(), []string{window})
	if err != nil {
		return seal, err
	}
	if l, err := ParseListing(window, listing[0]); err == nil {
		seal.Revision, seal.Final = l.Final, l.Final > 0
	}
	record, err := s.fields(ctx, s.keys.Final(), []string{window})
	if err != nil {
		return seal, err
	}
	if record[0] == "" {
		return seal, nil
	}
	kept, err := ParseSealRecord(record[0])
	if err != nil {
		return seal, Faultf("%q is no record of the final window %s", clip(record[0]), window)
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
