package reading

// The rows of a copy that are not shown: those of members banned now, and of erased members. The copy also has the
// rows of members that were banned when it was taken, so they are shown again once the ban is over.

import (
	"context"
	"slices"
	"sort"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
)

// unshown are the places of the rows that are not shown, in order. All other rows are shown, and ranked without
// gaps.
type unshown []int64

// upTo returns the number of these rows up to a place, inclusive.
func (u unshown) upTo(place int64) int64 {
	n, found := slices.BinarySearch(u, place)
	if found {
		n++
	}
	return int64(n)
}

func (u unshown) has(place int64) bool {
	_, found := slices.BinarySearch(u, place)
	return found
}

// placeOf returns the place of the row with a rank, both from 1.
func (u unshown) placeOf(rank int64) int64 {
	return rank + int64(sort.Search(len(u), func(k int) bool { return u[k]-1-int64(k) >= rank }))
}

// rankOf returns the rank of the row at a place, or the rank that it would have if it were shown.
func (u unshown) rankOf(place int64) int64 { return place - u.upTo(place-1) }

// unshownOf caches the places of a copy that are not shown. It is immutable.
type unshownOf struct {
	hidden *ranking.Hidden
	erased int64 // number of erased rows in the copy
	places map[string]int64
	all    unshown
}

// mostKnown is the maximum number of copies in the cache.
const mostKnown = 256

// hiddenNow returns the members that are hidden now according to Redis. It returns nil if Redis holds nothing,
// since then no consumer has applied the bans yet.
func (r *Reader) hiddenNow(ctx context.Context, all *boards.Boards, was *ranking.Board) (*ranking.Hidden, error) {
	if was.Beside.Schema == "" {
		return nil, nil //nolint:nilnil // see above
	}
	hidden, err := ranking.HiddenEach(ctx, all.Shards(), r.hidden.Load())
	if err == nil {
		r.hidden.Store(hidden)
	}
	return hidden, err
}

// unshown returns the places of a copy that are not shown. If hidden is nil, they are those of members that were
// hidden when the copy was taken.
func (a *archive) unshown(ctx context.Context, s *store.Store, w *store.Window, hidden *ranking.Hidden) (unshown, error) {
	a.mu.Lock()
	known := a.unshownOf[w.ID]
	a.mu.Unlock()
	if known != nil && known.hidden == hidden && known.erased == w.Erased {
		return known.all, nil
	}
	now := &unshownOf{hidden: hidden, erased: w.Erased, places: map[string]int64{}}
	var err error
	if now.all, err = s.UnshownPlaces(ctx, w.ID, hidden == nil); err != nil {
		return nil, err
	}
	if hidden != nil {
		var asked []string
		for _, member := range hidden.On(w.Board) {
			place, ok := int64(0), false
			if known != nil {
				place, ok = known.places[member]
			}
			if !ok {
				asked = append(asked, member)
			}
			now.places[member] = place // 0: the member has no row
		}
		found, err := s.Members(ctx, w.ID, asked)
		if err != nil {
			return nil, err
		}
		for i := range found {
			now.places[found[i].Member] = found[i].Place
		}
		for _, place := range now.places {
			if place > 0 {
				now.all = append(now.all, place)
			}
		}
		slices.Sort(now.all)
		now.all = slices.Compact(now.all)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.unshownOf) >= mostKnown {
		clear(a.unshownOf)
	}
	a.unshownOf[w.ID] = now
	return now.all, nil
}
