package ranking

// What a shard keeps of windows that were ever sealed: a record each, and the ledgers of the instants that
// records name (lua/record.lua).

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

// SealRecord is what a shard keeps of a window that was ever sealed.
type SealRecord struct {
	Revision int64
	At       time.Time // when it was sealed, by the shard's clock
	Passed   []Passed  // while it was final before
	// Reopened: the seal was taken back, and until that time nothing is to seal it by itself.
	Reopened time.Time
	// Why a seal was taken back: this one, or else that of the revision before; empty where none was.
	Why string
}

// Next is the revision that a seal now is.
func (r SealRecord) Next() int64 {
	if !r.Reopened.IsZero() {
		return r.Revision + 1
	}
	return r.Revision
}

// SealRecords are those of some windows, by their names in the listing, of which the shard has one.
func (s *Store) SealRecords(ctx context.Context, windows []string) (map[string]SealRecord, error) {
	all := map[string]SealRecord{}
	for names := range slices.Chunk(windows, listedAtOnce) {
		texts, err := s.fields(ctx, s.keys.Final(), names)
		if err != nil {
			return nil, fmt.Errorf("read the final windows under %q: %w", s.prefix, err)
		}
		for i, text := range texts {
			if text == "" {
				continue
			}
			r, err := ParseSealRecord(text)
			if err != nil {
				return nil, Faultf("%q is no record of the final window %s", clip(text), names[i])
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

// ParseSealRecord reads what seal.lua, unseal.lua and swap.lua write.
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

// Text is the record as ParseSealRecord reads it.
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

// SealLedgers are the ledgers as of which windows were sealed, by the times of their records; of
// those that the shard has.
func (s *Store) SealLedgers(ctx context.Context, at []time.Time) (map[time.Time]map[string]string, error) {
	all := map[time.Time]map[string]string{}
	for some := range slices.Chunk(at, listedAtOnce) {
		names := make([]string, len(some))
		for i, t := range some {
			names[i] = sealedLedger + strconv.FormatInt(t.UnixMicro(), 10)
		}
		texts, err := s.fields(ctx, s.keys.Final(), names)
		if err != nil {
			return nil, fmt.Errorf("read the ledgers of final windows under %q: %w", s.prefix, err)
		}
		for i, text := range texts {
			var words []string // as HGETALL gives a hash
			if text == "" {
				continue
			}
			if err := json.Unmarshal([]byte(text), &words); err != nil || len(words)%2 != 0 {
				return nil, Faultf("%q is no ledger of final windows", clip(text))
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

// fields are some of a hash's, empty where there is none.
func (s *Store) fields(ctx context.Context, key string, names []string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	reply, err := s.client.HMGet(ctx, key, names...).Result()
	if err != nil {
		return nil, s.explain(s.ofShard(err), "")
	}
	all := make([]string, len(reply))
	for i, v := range reply {
		all[i], _ = v.(string)
	}
	return all, nil
}

// sealingKept is how long a ledger is kept of which no window is final: it may be that of a call
// that is under way.
const sealingKept = time.Hour

// forgetSealings removes the ledgers as of which no window that has a record was sealed or reopened.
func (s *Store) forgetSealings(ctx context.Context) error {
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	used, ledgers := map[time.Time]bool{}, map[string]time.Time{}
	for page, err := range s.pages(ctx, s.keys.Final(), 0) {
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
				return nil // whoever reads it says so, and nobody knows what it names
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
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.explain(s.client.HDel(ctx, s.keys.Final(), unused...).Err(), "")
}

// sealedLedger is what the fields of the hash of final windows begin with that are ledgers: no
// board's name does.
const sealedLedger = "@"
