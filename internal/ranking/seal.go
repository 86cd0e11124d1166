package ranking

// Final windows: once a window is sealed, nothing changes it.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/lua"
)

// Sealing is a window to seal.
type Sealing struct {
	Name     string        // in the listing
	Listing  string        // as it was read from the shard; empty if the shard doesn't list it
	As       string        // its listing on a shard that lists it
	Lateness time.Duration // how long after its end it accepts events
	Least    int64         // its lowest revision: the one that another shard sealed it with
}

// Sealed is the result for one window.
type Sealed struct {
	Name string
	// Revision is the final window's revision, from 1. It is 0 if the window isn't final; Why then gives
	// the reason.
	Revision int64
	Why      Unsealed
}

// Unsealed is the reason why a window wasn't sealed.
type Unsealed string

// Reasons why a window isn't sealed. All but SealLost are temporary.
const (
	StillOpen    Unsealed = "open"    // it still accepts events, by Redis's clock
	OtherListing Unsealed = "listing" // its listing changed meanwhile, or its retention is over
	SealLost     Unsealed = "lost"    // one of its keys is gone
)

// Temporary errors of Seal. Unseal also returns ErrHeld.
var (
	ErrHeld = errors.New("a rebuild is about to swap the boards, or a reshard to switch to the new ones")
	// ErrBehind is the error that a *BehindError wraps.
	ErrBehind = errors.New("events that may be in the window don't count yet")
)

// BehindError reports a partition that isn't counted far enough for the windows to become final.
type BehindError struct {
	Partition string // field of the ledger
	Position  string // in the ledger; empty if it has none
	Needed    int64
}

func (e *BehindError) Error() string {
	return fmt.Sprintf("%v: %s is at %q, and was to be at %d", ErrBehind, e.Partition, e.Position, e.Needed)
}

func (e *BehindError) Unwrap() error { return ErrBehind }

// sealedAtOnce is how many windows a call seals; it takes about a millisecond of Redis's time.
const sealedAtOnce = 100

// Seal makes windows final on this shard and returns a result for each. before gives every partition's log
// end, read after the last of the windows stopped accepting events: any later event is late for them. If
// nothing, or not everything, was sealed, the error is ErrHeld, ErrRebuilding, a *BehindError or a
// *SchemaError. Calling Seal again is harmless.
func (s *Store) Seal(ctx context.Context, before map[ledger.Partition]int64, windows []Sealing) ([]Sealed, error) {
	var all []Sealed
	for some := range slices.Chunk(windows, sealedAtOnce) {
		sealed, err := s.seal(ctx, before, some)
		if err != nil {
			return all, fmt.Errorf("seal windows under %q: %w", s.prefix, err)
		}
		all = append(all, sealed...)
	}
	return all, nil
}

func (s *Store) seal(ctx context.Context, before map[ledger.Partition]int64, windows []Sealing) ([]Sealed, error) {
	keys := []string{s.keys.Ledger(), s.keys.Schema(), s.keys.Hold(), s.keys.Windows(), s.keys.Rebuild(), s.keys.Final()}
	args := []any{s.text(), len(before)}
	for _, p := range slices.SortedFunc(maps.Keys(before), ledger.Partition.Compare) {
		args = append(args, p.String(), before[p])
	}
	for _, w := range windows {
		shown, hidden := s.keys.Both(w.Name)
		keys = append(keys, shown, hidden)
		args = append(args, w.Name, w.Listing, w.As, w.Lateness.Milliseconds(), w.Least)
	}
	reply, err := s.Call(ctx, lua.Seal, keys, args...)
	if err != nil {
		return nil, err
	}
	words, err := Texts(reply)
	if err != nil || len(words) == 0 {
		return nil, Unexpected(lua.Seal, reply)
	}
	rest := words[1:]
	switch {
	case words[0] == "held":
		return nil, ErrHeld
	case words[0] == "busy":
		return nil, ErrRebuilding
	case words[0] == "schema" && len(rest) == 1:
		return nil, &SchemaError{Prefix: s.prefix, Wanted: s.text(), Found: rest[0]}
	case words[0] == "behind" && len(rest) == 2:
		p, err := ledger.ParsePartition(rest[0])
		if err != nil {
			return nil, Unexpected(lua.Seal, reply)
		}
		return nil, &BehindError{rest[0], rest[1], before[p]}
	case words[0] != "sealed" || len(rest) != len(windows):
		return nil, Unexpected(lua.Seal, reply)
	}
	all := make([]Sealed, len(windows))
	for i, word := range rest {
		all[i].Name = windows[i].Name
		if n, err := strconv.ParseInt(word, 10, 64); err == nil && n > 0 {
			all[i].Revision = n
			continue
		}
		all[i].Why = Unsealed(word)
		if !slices.Contains([]Unsealed{StillOpen, OtherListing, SealLost}, all[i].Why) {
			return nil, Unexpected(lua.Seal, reply)
		}
	}
	return all, nil
}

// Errors of Unseal.
var (
	// ErrNotFinal reports that a window isn't sealed.
	ErrNotFinal = errors.New("it isn't final")
	// ErrOver reports that a window's retention is over, so that nothing changes it, final or not.
	ErrOver = errors.New("its retention is over")
)

// Unseal removes a window's seal on this shard, and returns the revision that the seal had. Events count in
// the window again, and no job seals it by itself before until. If nothing was changed, the error is
// ErrNotFinal, ErrOver, ErrRebuilding or ErrHeld.
func (s *Store) Unseal(ctx context.Context, window string, until time.Time, why string) (revision int64, err error) {
	keys := []string{s.keys.Windows(), s.keys.Final(), s.keys.Rebuild(), s.keys.Ledger(), s.keys.Hold()}
	reply, err := s.Call(ctx, lua.Unseal, keys, window, until.UnixMilli(), why)
	if err != nil {
		return 0, fmt.Errorf("reopen %s: %w", window, err)
	}
	words, err := Texts(reply)
	switch {
	case err != nil || len(words) == 0:
		return 0, Unexpected(lua.Unseal, reply)
	case words[0] == "busy":
		return 0, fmt.Errorf("reopen %s: %w", window, ErrRebuilding)
	case words[0] == "held":
		return 0, fmt.Errorf("reopen %s: %w", window, ErrHeld)
	case words[0] == "open":
		return 0, fmt.Errorf("reopen %s: %w", window, ErrNotFinal)
	case words[0] == "over":
		return 0, fmt.Errorf("reopen %s: %w", window, ErrOver)
	case words[0] != "unsealed" || len(words) != 2:
		return 0, Unexpected(lua.Unseal, reply)
	}
	revision, err = strconv.ParseInt(words[1], 10, 64)
	if err != nil {
		return 0, Unexpected(lua.Unseal, reply)
	}
	return revision, nil
}

// Windows that stay readable after their retention, until they are stored elsewhere.

// Staying is a window that is to stay readable until a given time.
type Staying struct {
	Name    string // in the listing
	Listing string // as it was read from the shard
	Until   time.Time
}

// Longer makes windows of this shard readable at least until the given times, and returns how many it
// changed. It doesn't change a window whose listing was changed meanwhile.
func (s *Store) Longer(ctx context.Context, windows []Staying) (n int64, err error) {
	return s.stay(ctx, true, windows)
}

// Shorter makes windows readable at most until the given times. In all else it is like Longer.
func (s *Store) Shorter(ctx context.Context, windows []Staying) (n int64, err error) {
	return s.stay(ctx, false, windows)
}

func (s *Store) stay(ctx context.Context, longer bool, windows []Staying) (n int64, err error) {
	for some := range slices.Chunk(windows, sealedAtOnce) {
		keys, args := []string{s.keys.Windows()}, []any(nil)
		for _, w := range some {
			l, err := ParseListing(w.Name, w.Listing)
			was, to := l.Expires, w.Until.UnixMilli()
			if err != nil || to == was || longer != (to > was) {
				continue // invalid, which apply.lua reports, or already long or short enough
			}
			shown, hidden := s.keys.Both(w.Name)
			l.Expires = to
			keys = append(keys, shown, hidden)
			args = append(args, w.Name, w.Listing, l.Text(), was, to)
		}
		if len(args) == 0 {
			continue
		}
		reply, err := s.Call(ctx, lua.Stay, keys, args...)
		if err != nil {
			return n, fmt.Errorf("change until when windows under %q stay: %w", s.prefix, err)
		}
		if len(reply) != 2 || reply[0] != "changed" {
			return n, Unexpected(lua.Stay, reply)
		}
		did, _ := reply[1].(int64)
		n += did
	}
	return n, nil
}

// Stays reads the windows that stay longer: a text for each window and reason maps to the window's original
// expiry.
func (s *Store) Stays(ctx context.Context) (map[string]string, error) {
	return s.Hash(ctx, StaysKey(s.prefix), "which windows stay longer", 0)
}

// AddStays adds entries to Stays.
func (s *Store) AddStays(ctx context.Context, stays map[string]string) error {
	if err := s.SetFields(ctx, StaysKey(s.prefix), stays); err != nil {
		return fmt.Errorf("note which windows under %q stay longer: %w", s.prefix, err)
	}
	return nil
}

// DropStays removes entries from Stays.
func (s *Store) DropStays(ctx context.Context, names ...string) error {
	if err := s.RemoveFields(ctx, StaysKey(s.prefix), names...); err != nil {
		return fmt.Errorf("note which windows under %q stay longer: %w", s.prefix, err)
	}
	return nil
}
