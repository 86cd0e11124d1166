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

// Place is a destination to which windows are copied before they expire.
type Place struct {
	Name string // an identifier
	Text string // for the log, such as "the archive"
	// Lateness returns how long after its end a window accepts events.
	Lateness func(ledger.Window) (time.Duration, bool)
}

const (
	// A window that expires within staysWhen and is not in its place is prolonged by stays from now. If a window
	// is readable only for a short time after it is closed, the threshold is half of that time.
	staysWhen = 7 * 24 * time.Hour
	stays     = 14 * 24 * time.Hour
	// leastLeft is the minimum threshold, since a leader checks every minute.
	leastLeft = 2 * time.Minute
	// releasedFor is the minimum time that a window stays readable once it is in its place, since another place
	// may need it, too.
	releasedFor = time.Hour
)

// near returns how long before its expiry a closed window that is not in its place is prolonged.
func (p *Place) near(c *boards.Closed) time.Duration {
	late, _ := p.Lateness(c.Window)
	readable := time.Duration(c.Expires-c.End)*time.Millisecond - late
	return min(staysWhen, max(readable/2, leastLeft))
}

// Stay prolongs windows that expire soon and are not in the place yet, whether or not they are final. A window can
// still expire while no process is the leader.
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

// Release restores the original expiry of windows that are in the place.
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

// Waiting returns the number of final windows that are not in a place, and the earliest sealing time among them.
func Waiting(final []boards.Closed, is func(*boards.Closed) bool) (n int, oldest time.Time) {
	for i := range final {
		if c := &final[i]; !is(c) {
			if n++; oldest.IsZero() || c.SealedAt.Before(oldest) {
				oldest = c.SealedAt
			}
		}
	}
	return n, oldest
}
