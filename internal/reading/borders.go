package reading

import (
	"context"
	"sync"
	"time"

	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
)

// borders are where windows of calendars start and end, as consumers have settled it: theirs may
// be other time zone data. Periods that no time zone decides on cost no call.
type borders struct {
	mu   sync.Mutex
	all  ranking.SettledBorders
	next time.Time // when they are read again
}

const (
	// bordersFor is how long they are used before they are read again.
	bordersFor = 10 * time.Second
	// bordersAgain is how soon they are read again if Redis did not answer: reads that wait for
	// the same answer do not ask one after the other.
	bordersAgain = time.Second
)

// bind is a rule with the windows that the consumers count in. If Redis does not answer, it is by
// what was read last.
func (b *borders) bind(ctx context.Context, rule *periods.Rule, of *boards.Boards) periods.Rule {
	if !rule.Zoned() {
		return *rule
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Now().After(b.next) {
		all, err := of.SettledBorders(ctx)
		if b.next = time.Now().Add(bordersAgain); err == nil {
			b.all, b.next = all, time.Now().Add(bordersFor)
		}
	}
	return rule.By(b.all)
}
