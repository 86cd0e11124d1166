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
	read time.Time
}

// bordersFor is how long they are used before they are read again.
const bordersFor = 10 * time.Second

// bind is a rule with the windows that the consumers count in. If Redis does not answer, it is by
// what was read last.
func (b *borders) bind(ctx context.Context, rule *periods.Rule, of *boards.Boards) periods.Rule {
	if !rule.Zoned() {
		return *rule
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil || time.Since(b.read) > bordersFor {
		if all, err := of.SettledBorders(ctx); err == nil {
			b.all, b.read = all, time.Now()
		}
	}
	return rule.By(b.all)
}
