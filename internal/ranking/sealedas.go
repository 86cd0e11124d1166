package ranking

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// Seal is what a shard keeps of a window that was ever final.
type Seal struct {
	Revision int64             // 0: it never was
	Final    bool              // it is so now
	At       time.Time         // of the seal, by Redis's clock; zero where nothing is kept of it
	Ledger   map[string]string // then: which events are in the window; nil likewise
	Reopened string            // why the seal was taken back, where it was
}

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
	seal.Revision = ListedRevision(listing[0])
	seal.Final = seal.Revision > 0
	record, err := s.fields(ctx, s.keys.Final(), []string{window})
	if err != nil {
		return seal, err
	}
	if record[0] == "" {
		return seal, nil
	}
	kept, err := parseSealRecord(record[0])
	if err != nil {
		return seal, Faultf("%q is no record of the final window %s", clip(record[0]), window)
	}
	if !seal.Final {
		seal.Revision = kept.Revision
		if !kept.Reopened.IsZero() {
			seal.Reopened = kept.Why
		}
		return seal, nil
	}
	text, err := s.fields(ctx, s.keys.Final(), []string{sealedLedger + strconv.FormatInt(kept.At.UnixMicro(), 10)})
	if err != nil || text[0] == "" {
		return seal, err
	}
	var pairs []string
	if err := json.Unmarshal([]byte(text[0]), &pairs); err != nil || len(pairs)%2 > 0 {
		return seal, Faultf("%q is no ledger of the final window %s", clip(text[0]), window)
	}
	seal.At, seal.Ledger = kept.At, map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		seal.Ledger[pairs[i]] = pairs[i+1]
	}
	return seal, nil
}
