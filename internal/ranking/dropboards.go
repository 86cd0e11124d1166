package ranking

// Finds and drops some boards of a prefix while consumers write and readers read.

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
	"github.com/standings/standings/internal/retry"
)

// ErrRebuilding reports that a rebuild is running, which would bring dropped windows back.
var ErrRebuilding = errors.New("a rebuild is under way, or was killed less than a minute ago")

// SurveyBoards finds the listed windows of the boards whose name matches, on all shards. The result is for
// DropBoards.
func (v *View) SurveyBoards(ctx context.Context, match func(board string) bool) (*Found, error) {
	listings, err := v.Listings(ctx)
	if err != nil {
		return nil, err
	}
	f := &Found{}
	for i, all := range listings {
		var names []string
		for name := range all {
			if board, _, _ := strings.Cut(name, ":"); match(board) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		f.names = append(f.names, names)
		for _, name := range names {
			f.keys = append(f.keys, v.stores[i].keys.Listed(name))
		}
	}
	f.Keys = len(f.keys)
	return f, v.count(ctx, f)
}

// droppedAtOnce is how many windows a call drops; it takes about a millisecond of Redis's time.
const droppedAtOnce = 200

// DropBoards drops the windows that SurveyBoards found, shard by shard. A call drops up to 200 windows, and
// a pause follows each. From then on the windows are neither shown nor written; a rebuild brings back those
// that the log covers. DropBoards stops after the current call if the context ends. progress, which may be
// nil, receives the number of windows tried, counted once per shard. dropped counts a window once, however
// many shards had it.
func (v *View) DropBoards(ctx context.Context, f *Found, pause time.Duration, progress func(done int)) (dropped int64, err error) {
	done, gone := 0, map[string]bool{}
	for i, all := range f.names {
		for names := range slices.Chunk(all, droppedAtOnce) {
			some, err := v.stores[i].dropBoards(ctx, names)
			for _, name := range some {
				gone[name] = true
			}
			if err == nil && done+len(names) < f.Keys {
				err = retry.Sleep(ctx, pause)
			}
			if err != nil {
				return int64(len(gone)), fmt.Errorf("drop boards of %q: %d windows are dropped: %w", v.Prefix, len(gone), err)
			}
			if done += len(names); progress != nil {
				progress(done)
			}
		}
	}
	return int64(len(gone)), nil
}

// dropBoards drops windows of a shard and returns those that were listed.
func (s *Store) dropBoards(ctx context.Context, names []string) (dropped []string, err error) {
	keys, args := []string{s.keys.Windows(), s.keys.Dropped(), s.keys.Rebuild()}, []any{}
	for _, name := range names {
		shown, hidden := s.keys.Both(name)
		keys, args = append(keys, shown, hidden), append(args, name)
	}
	reply, err := s.Call(ctx, lua.DropBoards, keys, args...)
	if err == nil && len(reply) == 1 && reply[0] == "busy" {
		return nil, ErrRebuilding
	}
	if err != nil {
		return nil, err
	}
	if _, ok := one(reply[:min(1, len(reply))]).(int64); !ok {
		return nil, Unexpected(lua.DropBoards, reply)
	}
	return Texts(reply[1:])
}

func one(reply []any) any {
	if len(reply) != 1 {
		return nil
	}
	return reply[0]
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
	for page, err := range s.pages(ctx, s.keys.Dropped(), 0) {
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
			if err := s.undrop(ctx, over); err != nil {
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

func (s *Store) undrop(ctx context.Context, names []string) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.explain(s.client.HDel(ctx, s.keys.Dropped(), names...).Err(), "")
}
