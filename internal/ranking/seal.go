package ranking

// Final windows: sealed, so that nothing changes them any more.

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

// Sealing is a window to be sealed.
type Sealing struct {
	Name     string        // in the listing
	Listing  string        // as it was read of the shard; empty: the shard has none
	As       string        // its listing on a shard that has it
	Lateness time.Duration // how long after its end it takes events
	Least    int64         // its least revision: that of another shard
}

// Sealed is what became of it.
type Sealed struct {
	Name string
	// Revision is that of the final window, from 1; 0 where it isn't final, and then Why says why.
	Revision int64
	Why      Unsealed
}

// Unsealed is why a window wasn't sealed.
type Unsealed string

// Why windows aren't sealed. All but lost pass by themselves.
const (
	StillOpen    Unsealed = "open"    // it takes events, by the clock of Redis
	OtherListing Unsealed = "listing" // it was listed otherwise meanwhile, or its retention is over
	SealLost     Unsealed = "lost"    // a key of it is gone
)

// Errors of Seal, and ErrHeld of Unseal, that pass by themselves.
var (
	ErrHeld = errors.New("a rebuild is about to swap the boards, or a reshard to switch to the new ones")
	// ErrBehind is what a *BehindError is.
	ErrBehind = errors.New("events that may be in the window don't count yet")
)

// BehindError says which partition doesn't count far enough for windows to be final.
type BehindError struct {
	Partition string // as the ledger has it
	Position  string // the ledger's text, empty where there is none
	Needed    int64
}

func (e *BehindError) Error() string {
	return fmt.Sprintf("%v: %s is at %q, and was to be at %d", ErrBehind, e.Partition, e.Position, e.Needed)
}

func (e *BehindError) Unwrap() error { return ErrBehind }

// sealedAtOnce is how many windows are sealed a call: a millisecond of Redis's time.
const sealedAtOnce = 100

// Seal makes windows final, on this shard, and says what became of each. before is, for every
// partition, the log's end as it was found once none of the windows took events any more: what
// comes later is late for them. The error is ErrHeld, ErrRebuilding, a *BehindError or a
// *SchemaError where nothing, or not all, was sealed; to call again is harmless.
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
	// ErrNotFinal says that a window has no seal that could be taken back.
	ErrNotFinal = errors.New("it isn't final")
	// ErrOver says that nothing changes a window any more, final or not.
	ErrOver = errors.New("its retention is over")
)

// Unseal takes a window's seal back, on this shard, and returns the revision that it had: events
// count in it again, and until a time nothing is to seal it by itself. The error is ErrNotFinal, ErrOver,
// ErrRebuilding or ErrHeld where nothing was changed.
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
