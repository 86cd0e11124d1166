package ranking

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking/lua"
)

// KeyOutlives is how long a window's key outlives its retention.
const KeyOutlives = 24 * time.Hour

// RetireAfter is how long after a window's expiry its listing is removed. Its key expires a day earlier.
const RetireAfter = 48 * time.Hour

// Retire removes the listings of windows that have been over for two days, with the names of members who
// were in no other window, and returns the number of listings removed. Redis's clock decides, and a listing
// that changed after it was read stays. Any worker calls Retire from time to time. A *ClockError is
// returned after everything is done; it doesn't mean that Retire failed.
func (s *Store) Retire(ctx context.Context) (int, error) {
	dropped := 0
	for page, err := range s.listings(ctx, 0) {
		if err != nil {
			return dropped, fmt.Errorf("read the windows listed under %q: %w", s.prefix, err)
		}
		n, err := s.retire(ctx, page)
		dropped += n
		if err != nil {
			return dropped, fmt.Errorf("drop the windows of %q that are over: %w", s.prefix, err)
		}
	}
	if dropped > 0 {
		if err := s.forgetNames(ctx); err != nil {
			return dropped, err
		}
		if err := s.forgetSealings(ctx); err != nil {
			return dropped, fmt.Errorf("forget when windows of %q were sealed: %w", s.prefix, err)
		}
	}
	err := s.forget(ctx)
	if _, ok := errors.AsType[*ClockError](err); ok {
		return dropped, err
	}
	if err != nil {
		return dropped, fmt.Errorf("forget the dropped windows of %q that are over: %w", s.prefix, err)
	}
	return dropped, nil
}

func (s *Store) retire(ctx context.Context, page []string) (int, error) {
	keys, entries := []string{s.keys.Windows(), s.keys.Final()}, []any{2}
	for i := 0; i+1 < len(page); i += 2 {
		if l, err := ParseListing(page[i], page[i+1]); err == nil && goneBy(l.Expires) {
			shown, hidden := s.keys.Both(page[i])
			keys = append(keys, shown, hidden)
			entries = append(entries, page[i], page[i+1], l.Expires)
		}
	}
	return s.retired(ctx, keys, entries)
}

// retired calls retire.lua for entries of a hash.
func (s *Store) retired(ctx context.Context, keys []string, entries []any) (int, error) {
	if len(entries) == 1 {
		return 0, nil
	}
	reply, err := s.Call(ctx, lua.Retire, keys, entries...)
	if err != nil {
		return 0, err
	}
	if len(reply) != 1 {
		return 0, Unexpected(lua.Retire, reply)
	}
	n, _ := reply[0].(int64)
	return int(n), nil
}

// goneBy reports whether an entry that was used until expires, Unix ms, may be due for removal by this
// machine's clock. The script decides by Redis's clock.
func goneBy(expires int64) bool {
	return !time.Now().Before(time.UnixMilli(expires).Add(RetireAfter))
}

// ClockError reports that Redis's clock was ahead for a while: it treated windows as over that hadn't
// ended, and apply.lua left out events that came for them.
type ClockError struct {
	Windows []string // the last of each period: weekly:2026-W47
}

func (e *ClockError) Error() string {
	return fmt.Sprintf("the clock of Redis was ahead for a while, and events were left out of windows up to %s, which were over by it: "+
		"rebuild the boards from the log (consumer rebuild)", strings.Join(e.Windows, ", "))
}

// forget removes the entries of dropped windows that are over, and so accept no events anyway. It keeps the
// entries over:<period> of apply.lua, because an operator may raise a retention at any time. But a window
// that hasn't ended was never over by any retention: its entry exists because Redis's clock was wrong.
// forget removes such an entry too, and returns a *ClockError once everything is done.
func (s *Store) forget(ctx context.Context) error {
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	settled, err := s.SettledBorders(ctx)
	if err != nil {
		return err
	}
	var ahead []string
	for page, err := range s.Pages(ctx, s.keys.Dropped(), 0) {
		if err != nil {
			return err
		}
		var over []string
		for i := 0; i+1 < len(page); i += 2 {
			at, err := strconv.ParseInt(page[i+1], 10, 64)
			if err != nil {
				continue
			}
			if period, ok := strings.CutPrefix(page[i], "over:"); ok && strings.Count(page[i], ":") == 1 {
				if w, ok := s.unended(period, at, now, settled); ok {
					over, ahead = append(over, page[i]), append(ahead, period+":"+w.Name)
				}
			} else if strings.Count(page[i], ":") == 2 && !now.Before(time.UnixMilli(at).Add(RetireAfter)) {
				over = append(over, page[i])
			}
		}
		if len(over) > 0 {
			if err := s.RemoveFields(ctx, s.keys.Dropped(), over...); err != nil {
				return err
			}
		}
	}
	if len(ahead) > 0 {
		slices.Sort(ahead)
		return &ClockError{slices.Compact(ahead)} // a page may come twice
	}
	return nil
}

// unended returns the window of a period that starts at start, Unix ms, by the settled borders, if it
// hasn't ended.
func (s *Store) unended(period string, start int64, now time.Time, settled periods.Borders) (periods.Window, bool) {
	p, known := s.periods[period]
	if !known {
		return periods.Window{}, false
	}
	rule := p.Rule.By(settled)
	w, place, err := rule.At(start)
	return w, err == nil && place == periods.Inside && now.UnixMilli() < w.End
}

// forgetNames removes the names of members whose last window is gone.
func (s *Store) forgetNames(ctx context.Context) error {
	err := s.EachName(ctx, func(entries []string) error {
		gone := []any{0}
		for i := 0; i+1 < len(entries); i += 2 {
			words := strings.SplitN(entries[i+1], " ", 3)
			if len(words) < 3 {
				continue
			}
			if at, err := strconv.ParseInt(words[1], 10, 64); err == nil && goneBy(at) {
				gone = append(gone, entries[i], entries[i+1], at)
			}
		}
		_, err := s.retired(ctx, []string{s.keys.Names(), s.keys.Names()}, gone)
		return err
	})
	if err != nil {
		return fmt.Errorf("remove the names of members of %q who are in no window any more: %w", s.prefix, err)
	}
	return nil
}
