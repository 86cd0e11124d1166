package ranking

// Some boards of a prefix, found and dropped while consumers count and readers read.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/internal/periods"
)

// ErrRebuilding says that a rebuild is under way, which would bring back what is dropped.
var ErrRebuilding = errors.New("a rebuild is under way, or was killed less than a minute ago")

// SurveyBoards looks for the windows that are listed of boards whose name matches, to be
// given to DropBoards.
func (v *View) SurveyBoards(ctx context.Context, match func(board string) bool) (*Found, error) {
	names := map[string]bool{}
	err := v.store.steady(ctx, func() error {
		for page, err := range v.store.listings(ctx, 0) {
			if err != nil {
				return err
			}
			for i := 0; i < len(page); i += 2 {
				if board, _, _ := strings.Cut(page[i], ":"); match(board) {
					names[page[i]] = true
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for boards under %q: %w", v.Prefix, asRights(err, "", v.Prefix))
	}
	f := &Found{}
	for name := range names {
		f.names = append(f.names, name)
	}
	slices.Sort(f.names)
	for _, name := range f.names {
		f.keys = append(f.keys, v.store.keys.listed(name))
	}
	f.Keys = len(f.keys)
	return f, v.count(ctx, f)
}

// droppedAtOnce is how many windows are dropped a call: a millisecond of Redis's time.
const droppedAtOnce = 200

// DropBoards drops the windows that SurveyBoards found, some hundred a call with a pause
// after each. From then on they are neither shown nor counted in; a rebuild brings back
// those that the log has. It heeds the context's end after every call. progress, which may
// be nil, is told how many windows were tried.
func (v *View) DropBoards(ctx context.Context, f *Found, pause time.Duration, progress func(done int)) (dropped int64, err error) {
	done, k := 0, v.store.keys
	for names := range slices.Chunk(f.names, droppedAtOnce) {
		args := []any{nil, nil, nil, k.windows(), k.dropped(), k.rebuild()}
		for _, name := range names {
			args = append(args, k.listed(name))
		}
		keys := len(args) - 3
		for _, name := range names {
			args = append(args, name)
		}
		reply, err := v.store.run(ctx, dropBoardsScript, keys, args)
		if err == nil && len(reply) == 1 && reply[0] == "busy" {
			err = ErrRebuilding
		}
		if err == nil && done+len(names) < len(f.names) {
			err = wait(ctx, pause)
		}
		if n, ok := one(reply).(int64); ok {
			dropped += n
		}
		if err != nil {
			return dropped, fmt.Errorf("drop boards of %q: %d windows are dropped: %w", v.Prefix, dropped, err)
		}
		if done += len(names); progress != nil {
			progress(done)
		}
	}
	return dropped, nil
}

func one(reply []any) any {
	if len(reply) != 1 {
		return nil
	}
	return reply[0]
}

// ClockError says that Redis's clock was ahead for a while: windows that hadn't ended by the
// right time were over by it, and events that came for them were left out.
type ClockError struct {
	Windows []string // the last of each period: weekly:2026-W47
}

func (e *ClockError) Error() string {
	return fmt.Sprintf("the clock of Redis was ahead for a while, and events were left out of windows up to %s, which were over by it: "+
		"rebuild the boards from the log (consumer rebuild)", strings.Join(e.Windows, ", "))
}

// forget removes what was kept in mind of windows that take nothing any more, as they are
// over: dropped ones. What apply.lua keeps as over:<period> stays, since a retention may be
// raised at any time; but what hasn't ended was never over by any, and is there because the
// clock was wrong. That is a *ClockError, once everything is done.
func (s *Store) forget(ctx context.Context) error {
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	var ahead []string
	for page, err := range s.pages(ctx, s.keys.dropped(), 0) {
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
				if w, ok := s.unended(period, at, now); ok {
					over, ahead = append(over, page[i]), append(ahead, period+":"+w.Name)
				}
			} else if strings.Count(page[i], ":") == 2 && !now.Before(time.UnixMilli(at).Add(retireAfter)) {
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

// unended is the window of a period that starts at a time, ms, if it hasn't ended.
func (s *Store) unended(period string, start int64, now time.Time) (periods.Window, bool) {
	if _, known := s.periods[period]; !known {
		return periods.Window{}, false
	}
	w, err := s.calendar.At(periods.Period(period), start)
	return w, err == nil && now.UnixMilli() < w.End
}

func (s *Store) undrop(ctx context.Context, names []string) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return asRights(s.client.HDel(ctx, s.keys.dropped(), names...).Err(), "", s.prefix)
}
