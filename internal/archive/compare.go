package archive

// Comparison of a final window's copy with the window in Redis. Both are in the board's order and include hidden
// members. A row that only one of them has differs from all rows of the other by score or id.

import (
	"iter"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
)

// Compare calls differs with each row that only the archive or only Redis has; the other argument is nil. It stops
// if differs returns false. differs must not retain the rows. Compare ignores whether a member is hidden. It also
// ignores erased members, since a Redis that went back may still have their rows.
func Compare(archived, inRedis iter.Seq2[store.Row, error], erased map[string]bool, differs func(archived, inRedis *store.Row) bool) error {
	nextArchived, stop := iter.Pull2(kept(archived, nil))
	defer stop()
	nextInRedis, stop := iter.Pull2(kept(inRedis, erased))
	defer stop()
	a, err, inA := nextArchived()
	if err != nil {
		return err
	}
	r, err, inR := nextInRedis()
	for err == nil && (inA || inR) {
		order := boards.CompareRows(standingOf(&a), standingOf(&r))
		switch {
		case inA && inR && order == 0:
			if a, err, inA = nextArchived(); err == nil {
				r, err, inR = nextInRedis()
			}
		case inA && (!inR || order < 0):
			if !differs(&a, nil) {
				return nil
			}
			a, err, inA = nextArchived()
		default:
			if !differs(nil, &r) {
				return nil
			}
			r, err, inR = nextInRedis()
		}
	}
	return err
}

// kept returns the rows without those of erased members.
func kept(rows iter.Seq2[store.Row, error], erased map[string]bool) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		for r, err := range rows {
			if err == nil && (r.Erased() || erased[r.Member]) {
				continue
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

func standingOf(r *store.Row) ranking.Standing {
	return ranking.Standing{Score: r.Score, Member: r.Member}
}
