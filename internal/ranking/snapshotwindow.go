package ranking

import (
	"context"
	"fmt"
)

// Window reads who is shown in one window, page by page, calling each for every page: the backup of
// a window, where Pages is all that a shard has. The pages are read as those are, and mean the same;
// where one has First, those before don't count, and where the window isn't listed there is one with
// Gone. What it waits between two pages is up to each. An error of each ends it, and is in its error.
func (sn *Snapshot) Window(ctx context.Context, name string, each func(*SnapshotPage) error) error {
	began := false
	_, err := sn.try(ctx, &snapshotWindow{name: name, shownOnly: true, each: func(p *SnapshotPage) error {
		began = true
		return each(p)
	}})
	if err == nil && !began {
		err = each(&SnapshotPage{Window: name, Gone: true})
	}
	if err != nil {
		return fmt.Errorf("read %s of %q page by page: %w", name, sn.store.prefix, err)
	}
	return nil
}
