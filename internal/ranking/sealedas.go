package ranking

import (
	"context"
	"fmt"
	"time"
)

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
