package reading

// The rows of a copy that aren't shown belong to members who are banned by now, and to members who were erased. The
// copy has the rows of all others who were banned when it was taken, so a ban that is over shows them again.

import (
	"context"
	"maps"
	"slices"
	"sort"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
)

// unshown are the places of those rows, in order. The rows between are shown, and ranked without gaps.
type unshown []int64

// upTo is how many there are up to a place.
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

// placeOf is the place of the row with a rank, from 1.
func (u unshown) placeOf(rank int64) int64 {
	return rank + int64(sort.Search(len(u), func(k int) bool { return u[k]-1-int64(k) >= rank }))
}

// rankOf is the rank of the row at a place, or the one that it would have if it were shown.
func (u unshown) rankOf(place int64) int64 { return place - u.upTo(place-1) }

// unshownOf caches the rows of a copy that aren't shown. It doesn't change.
type unshownOf struct {
	hidden *ranking.Hidden
	erased int64 // rows of the copy when it was read
	places map[string]int64
	all    unshown
}

// mostKnown is how many copies that is known of.
const mostKnown = 256

// hiddenNow is who is hidden by now, as Redis has it. Where Redis holds nothing, no consumer has brought the
// bans in yet, and it is nil.
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

// unshown are the rows of a copy that aren't shown. Without hidden, members are hidden as they were when the copy
// was taken.
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
			now.places[member] = place // 0: none
		}
		found, err := s.PlacesOf(ctx, w.ID, asked)
		if err != nil {
			return nil, err
		}
		maps.Copy(now.places, found)
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
