package bans

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// State is the content of the topic: the latest record of each key without a later tombstone. It depends only on
// the records and their order.
type State map[Key]*Record

// take adds a record of the topic. A nil record is a tombstone.
func (s State) take(k Key, r *Record) {
	if r == nil {
		delete(s, k)
		return
	}
	s[k] = r
}

// All returns the records, by member and then by board.
func (s State) All() []*Record {
	return slices.SortedFunc(maps.Values(s), func(a, b *Record) int {
		return a.Compare(b.Key)
	})
}

// Count returns the number of bans in force at a time, and the number of erasures.
func (s State) Count(now time.Time) (banned, erased int) {
	for _, r := range s {
		switch {
		case r.Erased:
			erased++
		case r.InForce(now):
			banned++
		}
	}
	return banned, erased
}

// Compare orders keys by member, and then by board.
func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Member, other.Member), cmp.Compare(k.Board, other.Board))
}

// inForce returns the bans in force at a time, and when the next of them ends; zero if none does.
func (s State) inForce(now time.Time) (bans map[Key]Ban, next time.Time) {
	bans = map[Key]Ban{}
	for k, r := range s {
		if !r.InForce(now) {
			continue
		}
		bans[k] = Ban{Key: k, Erased: r.Erased}
		if !r.Erased && !r.Until.IsZero() && (next.IsZero() || r.Until.Before(next)) {
			next = r.Until
		}
	}
	return bans, next
}
