package reading

import (
	"context"
	"time"

	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
)

// borders are the starts and ends of calendar windows as the consumers have settled them. The consumers may have
// other time zone data than this program. Periods without a time zone need no call.
type borders struct {
	turn chan struct{} // holds a token while a read uses the fields below, also during its call to Redis
	all  ranking.SettledBorders
	next time.Time // when to read them again
}

const (
	// bordersFor is how long the borders are used before they are read again.
	bordersFor = 10 * time.Second
	// bordersAgain is how soon they are read again if Redis did not answer, so that reads that
	// wait for each other do not all wait for Redis.
	bordersAgain = time.Second
)

// bind returns a rule with the windows that the consumers count in. If Redis does not answer, it uses
// the borders that were read last. If the context ends first, it returns the rule as it is.
func (b *borders) bind(ctx context.Context, rule *periods.Rule, of *boards.Boards) periods.Rule {
	if !rule.Zoned() {
		return *rule
	}
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-ctx.Done():
		return *rule
	}
	if time.Now().After(b.next) {
		all, err := of.SettledBorders(ctx)
		if b.next = time.Now().Add(bordersAgain); err == nil {
			b.all, b.next = all, time.Now().Add(bordersFor)
		}
	}
	return rule.By(b.all)
}
