package ranking

import (
	"sync"

	"github.com/standings/standings/internal/ledger"
)

// touched is which members of which windows pieces were sent for.
type touched struct {
	mu      sync.Mutex
	windows map[string]map[string]bool
}

func (t *touched) note(p *ledger.Piece) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range p.Groups {
		g := &p.Groups[i]
		for _, n := range g.Windows {
			name := p.Windows[n].Listing()
			members := t.windows[name]
			if members == nil {
				members = map[string]bool{}
				t.windows[name] = members
			}
			for j := range g.Members {
				members[string(g.Members[j].ID)] = true
			}
		}
	}
}
