package shadow

// The shadow as whoever folds the log into it writes: what it adds is noted for a comparison,
// and that Redis is full ends it.

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

// Store is the shadow: a store like the live one, with a ledger of its own. Every StartPosition
// there has an origin.
type Store struct {
	*ranking.Store

	// touched notes every piece that was sent; nil unless the shadow is being compared.
	touched atomic.Pointer[touched]
}

// Apply is as the live store's.
func (s *Store) Apply(ctx context.Context, p *ledger.Piece) (ledger.Answer, time.Duration, error) {
	a, took, err := s.Store.Apply(ctx, p)
	if t := s.touched.Load(); t != nil {
		t.note(p)
	}
	return a, took, Full(err)
}

// Begin is as the live store's.
func (s *Store) Begin(ctx context.Context, all []ledger.StartPosition) (ledger.StartResult, error) {
	begun, err := s.Store.Begin(ctx, all)
	return begun, Full(err)
}

// Classify says what an error of the shadow asks for.
func (*Store) Classify(err error) ledger.Verdict { return Classify(err) }

// touched is which members of which windows pieces were sent for.
type touched struct {
	mu      sync.Mutex
	windows map[string]map[string]bool
	size    int
	over    bool // more than mostTouched
}

// mostTouched is what a comparison remembers at most: some 100 MB.
const mostTouched = 1 << 20

func newTouched() *touched { return &touched{windows: map[string]map[string]bool{}} }

// take empties it.
func (t *touched) take() (windows map[string]map[string]bool, over bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	windows, over = t.windows, t.over
	t.windows, t.size, t.over = map[string]map[string]bool{}, 0, false
	return windows, over
}

func (t *touched) note(p *ledger.Piece) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range p.Groups {
		g := &p.Groups[i]
		for _, n := range g.Windows {
			members := t.of(p.Windows[n].Listing())
			for j := range g.Members {
				if id := g.Members[j].ID; !members[string(id)] && !t.add(members, string(id)) {
					return
				}
			}
		}
	}
}

// again notes what was taken and not asked for.
func (t *touched) again(windows map[string]map[string]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, all := range windows {
		members := t.of(name)
		for id := range all {
			if !members[id] && !t.add(members, id) {
				return
			}
		}
	}
}

func (t *touched) of(name string) map[string]bool {
	members := t.windows[name]
	if members == nil {
		members = map[string]bool{}
		t.windows[name] = members
	}
	return members
}

// add reports false where no more can be remembered.
func (t *touched) add(members map[string]bool, id string) bool {
	if t.size >= mostTouched {
		t.over = true
		return false
	}
	members[id] = true
	t.size++
	return true
}
