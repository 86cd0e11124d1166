package ranking

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/internal/retry"
)

// anew is how long a window is begun anew, since bans change or it is sealed and opened, and for how
// long is waited for bans to be carried out.
var anew = retry.Policy{First: 50 * time.Millisecond, Longest: time.Second, Patience: time.Minute} // tests have less

// errAnew says that what was read of a window doesn't fit together. errEnough says that no more is wanted.
var (
	errAnew   = errors.New("it has to be begun anew")
	errEnough = errors.New("no more is wanted")
)

// Pages reads every window that is listed, one after another in the order of their names, waiting
// for pause between two calls. It ends with the first error: then the snapshot is of no use. A window
// that is opened later isn't read: all of its events lie past Begin.
//
// A window's two sets are read one after the other, and a ban moves standings from one to the other.
// So a window is begun anew if bans changed while it was read, and isn't begun while one is being
// carried out. It is also begun anew where it was sealed or reopened meanwhile, or both: while it is
// final positions go on, and it doesn't.
func (sn *Snapshot) Pages(ctx context.Context, pause time.Duration) iter.Seq2[*SnapshotPage, error] {
	return func(yield func(*SnapshotPage, error) bool) {
		listed, err := sn.store.ListingsBy(ctx, pause)
		if err != nil {
			yield(nil, err)
			return
		}
		each := func(p *SnapshotPage) error {
			if !yield(p, nil) {
				return errEnough
			}
			return retry.Sleep(ctx, pause)
		}
		for _, name := range slices.Sorted(maps.Keys(listed)) {
			gone, err := sn.window(ctx, name, each)
			if gone {
				sn.gone[name] = listed[name]
			}
			if errors.Is(err, errEnough) {
				return
			} else if err != nil {
				yield(nil, fmt.Errorf("read %s of %q for a snapshot: %w", name, sn.store.prefix, err))
				return
			}
		}
	}
}

// window reads a window until what was read of it fits together, or it is gone.
func (sn *Snapshot) window(ctx context.Context, name string, each func(*SnapshotPage) error) (gone bool, err error) {
	return sn.try(ctx, &snapshotWindow{name: name, each: each})
}

// try is one try after another.
func (sn *Snapshot) try(ctx context.Context, wanted *snapshotWindow) (gone bool, err error) {
	pauses, begun := anew.Start(), false
	for {
		w := *wanted
		w.Snapshot = sn
		err := w.read(ctx)
		begun = begun || w.passed
		switch {
		case errors.Is(err, errGone):
			if !begun {
				return true, nil
			}
			return true, w.each(&SnapshotPage{Window: w.name, Gone: true})
		case !errors.Is(err, errAnew):
			return false, err
		}
		if err := pauses.Next(ctx); errors.Is(err, retry.ErrPatience) {
			return false, ErrUnsettled
		} else if err != nil {
			return false, err
		}
	}
}

// snapshotWindow is one try to read a window.
type snapshotWindow struct {
	*Snapshot

	name string
	each func(*SnapshotPage) error
	// shownOnly: who is hidden isn't wanted.
	shownOnly bool
	begun     bool // a page was passed on since it was begun
	// passed: one was at all.
	passed bool
	core   string // its listing, but for which sets it has
	record string // of its seal
	bans   string
}

// read reads both sets. Where nobody is banned, and no hidden set is said to be there, a first page
// may be all that there is of a window.
func (w *snapshotWindow) read(ctx context.Context) error {
	at, page, err := w.call(ctx, &scanAt{w.name, "shown", "0"}, "shown")
	if err != nil {
		return err
	}
	if err := w.settle(ctx, at.bans); err != nil {
		return err
	}
	if _, _, err := ParseListing(w.name, page.listing); err != nil {
		return err
	}
	w.bans, w.core, w.record = at.bans, bareListing(page.listing), page.record
	hides := !w.shownOnly && (at.bans != "" || bareListing(page.listing) != page.listing)
	if !hides && page.next == "0" {
		return w.pass(at, page, false)
	}
	// Cursors are those of one server's process.
	return w.store.onOneServer(ctx, func() error {
		w.begun = false
		if hides {
			if err := w.scan(ctx, "hidden"); err != nil {
				return err
			}
		}
		return w.scan(ctx, "shown")
	})
}

func (w *snapshotWindow) scan(ctx context.Context, set string) error {
	for cursor := "0"; ; {
		at, page, err := w.call(ctx, &scanAt{w.name, set, cursor}, set)
		if err != nil {
			return err
		}
		if err := w.pass(at, page, set == "hidden"); err != nil {
			return err
		}
		if cursor = page.next; cursor == "0" {
			return nil
		}
	}
}

// pass passes a page on that fits to the ones before.
func (w *snapshotWindow) pass(at *Instant, page *scannedPage, hidden bool) error {
	sealed := bareListing(page.listing) != w.core || page.record != w.record // or reopened, or both
	if at.bans != w.bans || sealed {
		return errAnew
	}
	first := !w.begun
	w.begun, w.passed = true, true
	return w.each(&SnapshotPage{Instant: *at, Window: w.name, Listing: page.listing, First: first, Hidden: hidden, Rows: page.rows})
}

// settle makes sure that by a version of the bans none is being carried out: a page of another
// version may have members moved.
func (w *snapshotWindow) settle(ctx context.Context, version string) error {
	sn := w.Snapshot
	if version == "" || sn.isSettled && sn.settled == version {
		return nil
	}
	fields, err := sn.store.BannedFields(ctx)
	if err != nil {
		return err
	}
	if fields["version"] != version {
		return errAnew
	}
	delete(fields, "version")
	for _, state := range fields {
		switch word, _, _ := strings.Cut(state, " "); word {
		case "hiding", "showing", "erasing":
			return errAnew
		}
	}
	sn.settled, sn.isSettled = version, true
	return nil
}

// bareListing is a listing without the word for which sets its window has.
func bareListing(listing string) string {
	words := strings.Fields(listing)
	return strings.Join(slices.DeleteFunc(words, func(word string) bool { return strings.HasPrefix(word, "+") }), " ")
}
