package boards

// Windows that aren't final: what an archive has backups of.

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
)

// Live are all listed windows that can be read and that some shard doesn't have sealed, by their starts,
// those of a start by name. kept says which are of a board and a period that are configured. It goes
// through the listings page by page, as Closed does.
func (b *Boards) Live(ctx context.Context, kept func(ledger.Window) bool, pause time.Duration) ([]ledger.Window, error) {
	now, _, err := b.Clocks(ctx)
	if err != nil {
		return nil, err
	}
	sealed := map[ledger.Window]int{} // on how many shards
	for _, s := range b.shards {
		listings, err := s.ListingsBy(ctx, pause)
		if err != nil {
			return nil, err
		}
		for name, text := range listings {
			w, expires, err := ranking.ParseListing(name, text)
			if err != nil || expires <= now.UnixMilli() || !kept(w) {
				continue // whoever applies to it says what is wrong
			}
			if ranking.ListedRevision(text) > 0 {
				sealed[w]++
			} else {
				sealed[w] += 0
			}
		}
	}
	var live []ledger.Window
	for w, n := range sealed {
		if n < len(b.shards) {
			live = append(live, w)
		}
	}
	slices.SortFunc(live, func(x, y ledger.Window) int {
		return cmp.Or(cmp.Compare(x.Start, y.Start), strings.Compare(x.Listing(), y.Listing()))
	})
	return live, nil
}
