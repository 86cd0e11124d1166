package shadow

// The shadow as its writer sees it. It notes the members of each piece for a comparison, and turns a full
// Redis into an error that ends the rebuild.

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

// Store is the shadow: a store like the live one, with a ledger of its own. Each StartPosition passed to
// Begin has an origin.
type Store struct {
	*ranking.Store

	// touched records every piece that was sent. It is nil unless a comparison is under way.
	touched atomic.Pointer[touched]
}

// Apply applies a piece as the live store does, and notes its members. It returns a *FullError if Redis is
// full.
func (s *Store) Apply(ctx context.Context, p *ledger.Piece) (ledger.Answer, time.Duration, error) {
	a, took, err := s.Store.Apply(ctx, p)
	if t := s.touched.Load(); t != nil {
		t.note(p)
	}
	return a, took, Full(err)
}

// Begin starts partitions as the live store does. It returns a *FullError if Redis is full.
func (s *Store) Begin(ctx context.Context, all []ledger.StartPosition) (ledger.StartResult, error) {
	begun, err := s.Store.Begin(ctx, all)
	return begun, Full(err)
}

// Classify returns the verdict on an error of the shadow.
func (*Store) Classify(err error) ledger.Verdict { return Classify(err) }

// touched records, by window, the members for which pieces were sent.
type touched struct {
	mu      sync.Mutex
	windows map[string]map[string]bool
	size    int
	over    bool // there were more than mostTouched
}

// mostTouched is the largest number of members that a comparison records, which takes about 100 MB.
const mostTouched = 1 << 20

func newTouched() *touched { return &touched{windows: map[string]map[string]bool{}} }

// take returns the recorded members and clears the record.
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

// again records members that take returned and that were not compared.
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

// add returns false if the record is full.
func (t *touched) add(members map[string]bool, id string) bool {
	if t.size >= mostTouched {
		t.over = true
		return false
	}
	members[id] = true
	t.size++
	return true
}
