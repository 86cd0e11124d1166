package archive

// A copy of a final window compared with what Redis has of it. Both are in the order of the board, with the
// rows of hidden members: a row that one of them lacks has no partner with the same score and id.

import (
	"iter"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/boards"
)

// Compare calls differs with each row that only the archive has, or only Redis, the other being nil, until
// that returns false; it must not retain them. Whether a member is hidden is no difference, nor are erased members, whose rows a Redis
// that went back may have.
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

// kept are the rows of members who aren't erased.
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
