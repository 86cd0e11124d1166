package shadow

// A shadow into which a snapshot is loaded before the log is folded into it. Why that is exact is in
// internal/archive/snapshot.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/lua"
)

// loadedAtOnce is how many rows, or fields, a call loads: about a millisecond of Redis's time.
const loadedAtOnce = 1000

// Loading has rows of a snapshot be loaded, of which each call compares in Redis whether all before are
// there. It is used by one goroutine at a time.
//
//	Dropped, Page, Page, … ─▶ Shadow().Begin, which compares once more
type Loading struct {
	r    *Rebuild
	of   string
	sent int64
	over map[string]bool
}

// Load begins to load a snapshot, by its name, that was begun at a time, by Redis's clock then. It is called
// once, before the shadow is begun.
func (r *Rebuild) Load(of string, begun time.Time) *Loading {
	r.restores, r.since, r.asOf = true, begun, map[string]time.Time{}
	r.shadow.loads.Store(new(string))
	return &Loading{r: r, of: of, over: map[string]bool{}}
}

// End ends the loading: it looks which of the windows that are final in the snapshot were reopened on the
// live boards. The shadow isn't begun before that, nor planned.
func (l *Loading) End(ctx context.Context) error {
	r := l.r
	var final []string
	listed, err := r.shadow.Listings(ctx)
	if err == nil {
		for name, listing := range listed {
			if ranking.ListedRevision(listing) > 0 {
				final = append(final, name)
			}
		}
		var records map[string]ranking.SealRecord
		if records, err = r.live.SealRecords(ctx, final); err == nil {
			r.reopened = map[string]bool{}
			for name := range records {
				r.reopened[name] = true // or it is listed as final, and kept for that
			}
		}
	}
	if err != nil {
		return fmt.Errorf("load a snapshot: %w", err)
	}
	return nil
}

// Over are windows whose retention was over, by the clock of Redis: nothing of them was loaded.
func (l *Loading) Over() []string { return slices.Sorted(maps.Keys(l.over)) }

// Dropped loads which windows nothing opens any more: the fold is to open none of them either.
func (l *Loading) Dropped(ctx context.Context, fields map[string]string) error {
	for names := range slices.Chunk(slices.Sorted(maps.Keys(fields)), loadedAtOnce) {
		var values []any
		for _, name := range names {
			values = append(values, name, fields[name])
		}
		if err := l.call(ctx, "", "", values); err != nil {
			return fmt.Errorf("load what is dropped: %w", err)
		}
	}
	return nil
}

// Page loads a page. ErrLost says that Redis doesn't have all pages before it any more.
func (l *Loading) Page(ctx context.Context, p *ranking.SnapshotPage) error {
	if l.over[p.Window] {
		return nil
	}
	l.r.asOf[p.Window] = time.UnixMilli(p.Now)
	rows := p.Rows
	for first := true; first || len(rows) > 0; first = false {
		n := min(len(rows), loadedAtOnce)
		values := make([]any, 0, 2*n)
		for _, row := range rows[:n] {
			// By 17 digits at most Redis reads the very same number.
			values = append(values, strconv.FormatFloat(row.Score, 'g', -1, 64), row.Member)
		}
		rows = rows[n:]
		if err := l.call(ctx, p.Window, p.Listing, values); err != nil {
			return fmt.Errorf("load %s: %w", p.Window, err)
		}
		if l.over[p.Window] {
			return nil
		}
	}
	return nil
}

// call sends rows until it is known that they are there.
func (l *Loading) call(ctx context.Context, window, listing string, values []any) error {
	r := l.r
	k := r.shadow.Keys()
	keys := []string{k.Loaded(), k.Windows(), k.Dropped()}
	if window != "" {
		shown, hidden := k.Both(window)
		keys = append(keys, shown, hidden)
	}
	was := *r.shadow.loads.Load()
	next := l.of + " " + strconv.FormatInt(l.sent+1, 10)
	args := append([]any{was, next, r.lease.Milliseconds(), window, listing}, values...)
	var reply []any
	err := Retry(ctx, func() (err error) { reply, err = r.live.Call(ctx, lua.Load, keys, args...); return Full(err) })
	if err != nil {
		return ofShard(r.live, err)
	}
	words, err := ranking.Texts(reply)
	if err != nil {
		return ofShard(r.live, err)
	}
	switch strings.Join(words[:min(1, len(words))], "") {
	case "over":
		l.over[window] = true
	case "loaded":
	case "lost":
		return ofShard(r.live, fmt.Errorf("%w (%s)", ErrLost, k.Loaded()))
	default:
		return ofShard(r.live, ranking.Unexpected(lua.Load, reply))
	}
	l.sent++
	r.shadow.loads.Store(&next)
	return nil
}

// loading reports whether there is something loaded, or has been: its mark has to be there.
func (r *Rebuild) loading() bool {
	mark := r.shadow.loads.Load()
	return mark != nil && *mark != ""
}

// Restored notes beside the live boards what a snapshot says of windows that were dropped or sealed, as
// their hashes have it, before the swap. Of those that come back final the record is as it was; any other
// that was sealed by then has come back open, and its next seal is another revision.
func (r *Rebuild) Restored(ctx context.Context, dropped, final map[string]string) error {
	shadow, err := r.shadow.Listings(ctx)
	if err != nil {
		return fmt.Errorf("note what the snapshot says of windows: %w", err)
	}
	var fields [2][]string
	for name, value := range dropped {
		fields[0] = append(fields[0], name, value)
	}
	r.passed = map[string]string{}
	for name, value := range final {
		value, passed := sealRecord(name, value, shadow[name], r.since, r.asOf[name])
		if value != "" {
			fields[1] = append(fields[1], name, value)
		}
		if passed != "" {
			r.passed[name] = passed
		}
	}
	for i := range fields {
		for some := range slices.Chunk(fields[i], 2*loadedAtOnce) {
			args := []any{r.lock, (1 - i) * len(some) / 2}
			for _, text := range some {
				args = append(args, text)
			}
			k := r.live.Keys()
			var reply []any
			err := Retry(ctx, func() (err error) {
				reply, err = r.live.Call(ctx, lua.Restored, []string{k.Rebuild(), k.Windows(), k.Dropped(), k.Final()}, args...)
				return Full(err)
			})
			if err == nil && len(reply) == 1 && reply[0] == "lost" {
				err = ErrLost
			} else if err == nil && (len(reply) != 1 || reply[0] != "noted") {
				err = ranking.Unexpected(lua.Restored, reply)
			}
			if err != nil {
				return fmt.Errorf("note what the snapshot says of windows: %w", ofShard(r.live, err))
			}
		}
	}
	return nil
}

// sealRecord is what is noted of a window, or of a ledger, @ and its instant, by its field of a snapshot's
// hash of final windows, and which events had passed the window by when its rows were read (lua/seal.lua).
// Those of a window that comes back open are noted as it does, by the swap.
func sealRecord(name, record, listing string, begun, read time.Time) (noted, passed string) {
	if strings.HasPrefix(name, "@") {
		return record, ""
	}
	r, err := ranking.ParseSealRecord(record)
	if err != nil {
		return "", ""
	}
	if listed := ranking.ListedRevision(listing); listed > 0 {
		return asListed(r, listed, read).Text(), ""
	}
	var is []ranking.Passed
	for _, p := range r.Passed {
		switch {
		case !p.From.Before(read): // the rows have them
		case p.To.Before(begun):
			is = append(is, p)
		default: // a member of whom there is no row has what came since the snapshot was begun
			is = append(is, ranking.Unsaid(p.To))
		}
	}
	r.Passed = nil
	if r.Reopened.IsZero() {
		r.Reopened, r.Why = time.Now(), "restored"
	}
	return r.Text(), ranking.PassedText(is)
}

// asListed is the record of the seal that a window's rows are of: it may have been reopened after they
// were read, and sealed anew.
func asListed(r ranking.SealRecord, revision int64, read time.Time) ranking.SealRecord {
	since := func(p ranking.Passed) bool { return p.From.Equal(r.At) }
	if r.Revision > revision {
		since = func(p ranking.Passed) bool { return p.To.After(read) }
	}
	i := slices.IndexFunc(r.Passed, since)
	if i >= 0 {
		r.Revision, r.At, r.Passed = revision, r.Passed[i].From, r.Passed[:i]
		r.Reopened, r.Why = time.Time{}, ""
	}
	return r
}
