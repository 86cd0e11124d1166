package oracle

// The expected content of Redis.

import (
	"fmt"
	"time"
)

// Expected is the expected content of Redis at a moment.
type Expected struct {
	// Boards has the sorted sets by their names in the listing, and in each the bits of every member's
	// score.
	Boards map[string]map[string]uint64
	// Windows is the listing, as returned by Listing.Text.
	Windows map[string]string
	// Expires is when each key expires, in Unix ms.
	Expires map[string]int64
	// Names has the names of members with a standing: the time of the event that set the name, in Unix ms, a
	// blank and the name. An event whose windows have all ended their retention sets no name.
	Names map[string]string
}

// Expected returns the standings as of now. Redis never writes a window whose retention ended before its events
// arrived, so no window's retention may end while a test runs.
func (o *Oracle) Expected(now time.Time) (Expected, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.catchUp()
	e := Expected{Boards: map[string]map[string]uint64{}, Windows: map[string]string{}, Expires: map[string]int64{}, Names: map[string]string{}}
	for b, set := range o.boards {
		w := b.window
		expires := w.end + w.period.Retention.Milliseconds()
		if expires <= now.UnixMilli() {
			continue
		}
		listing := fmt.Sprintf("%s:%s:%s", b.name, w.period.Name, w.name)
		scores := make(map[string]uint64, len(set.members))
		for user, s := range set.members {
			bits, err := set.layout.score(w, s)
			if err != nil {
				return e, fmt.Errorf("%q in %s: %w", user, listing, err)
			}
			scores[user] = bits
			is := name{}
			for until, said := range o.names[user] {
				if until > now.UnixMilli() {
					is = later(is, said)
				}
			}
			if is.text != "" {
				e.Names[user] = fmt.Sprintf("%d %s", is.time, is.text)
			}
		}
		e.Boards[listing] = scores
		rule := ""
		if r := set.layout.rule; !o.config.byDefault(r) {
			rule = r.text()
		}
		e.Windows[listing] = Listing{Start: w.start, End: w.end, Expires: expires, Rule: rule}.Text()
		e.Expires[listing] = expires + 24*time.Hour.Milliseconds()
	}
	return e, nil
}
