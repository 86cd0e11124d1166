package archive

// Windows stay in Redis until they are in the archive, or in the final topic.

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/boards"
)

// Place is where windows are copied to before they expire.
type Place struct {
	Name string // a word
	Text string // for the log: "the archive"
	// Lateness is how long after its end a window takes events.
	Lateness func(ledger.Window) (time.Duration, bool)
}

const (
	// Windows that expire within staysWhen and aren't in their place stay for stays from then on. Of a window that
	// is readable only for a short time after it is closed, half of that is enough.
	staysWhen = 7 * 24 * time.Hour
	stays     = 14 * 24 * time.Hour
	// leastLeft is when windows stay at the latest: a leader looks every minute.
	leastLeft = 2 * time.Minute
	// releasedFor is how long a window is readable at least once it is in its place: another place may want it, too.
	releasedFor = time.Hour
)

// near is how long before its expiry a closed window that isn't in its place stays.
func (p *Place) near(c *boards.Closed) time.Duration {
	late, _ := p.Lateness(c.Window)
	readable := time.Duration(c.Expires-c.End)*time.Millisecond - late
	return min(staysWhen, max(readable/2, leastLeft))
}

// Stay has windows stay that expire soon, final or not, and aren't in the place yet. If no process leads
// meanwhile a window can expire all the same.
func (p *Place) Stay(ctx context.Context, all *boards.Boards, windows []boards.Closed, log *zap.Logger) error {
	now, err := all.Now(ctx)
	if err != nil {
		return fmt.Errorf("have windows stay that aren't in %s: %w", p.Text, err)
	}
	var soon []boards.Closed
	for i := range windows {
		if windows[i].Expires < now.Add(p.near(&windows[i])).UnixMilli() {
			soon = append(soon, windows[i])
		}
	}
	until := now.Add(stays)
	n, err := all.Stay(ctx, p.Name, soon, until)
	if n > 0 {
		log.Warn("windows stay in Redis past their retention: they aren't in "+p.Text+" yet", zap.Int("windows", len(soon)), zap.String("first", soon[0].Listing()), zap.Time("until", until))
	}
	if err != nil {
		return fmt.Errorf("have windows stay that aren't in %s: %w", p.Text, err)
	}
	return nil
}

// Release has windows expire when they were to, once they are in the place.
func (p *Place) Release(ctx context.Context, all *boards.Boards, closed []boards.Closed, is func(*boards.Closed) bool) error {
	now, err := all.Now(ctx)
	if err == nil {
		err = all.Release(ctx, p.Name, closed, is, now.Add(releasedFor))
	}
	if err != nil {
		return fmt.Errorf("have windows expire that are in %s: %w", p.Text, err)
	}
	return nil
}
