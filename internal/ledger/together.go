package ledger

import (
	"cmp"
	"maps"
	"strings"
)

// Together returns the states of all shards as one state, for display:
//
//   - A partition is at the position of the shard that is furthest behind; a torn position is before one that isn't. If
//     a shard has no position, the result has none: that shard has none of the partition's events.
//   - A partition is being refilled while any shard is, up to the highest offset of these shards.
//   - A partition's origin is the latest of all shards, because the boards lack what one shard lacks. The same holds
//     for the time from which an added period is counted.
//   - Windows are summed: every shard that has a member of a window lists it.
//   - The state is held if any shard is. Clock and workers are those of shard 0. The schema is that of the first shard
//     that has one.
//
// The state of a single shard is returned unchanged. Otherwise the result shares no map with the shards'
// states.
func Together(shards []State) State {
	if len(shards) == 1 {
		return shards[0]
	}
	all := State{Ledger: map[string]string{}, Origins: map[string]string{}, Since: map[string]int64{}, Workers: map[string]string{}, Refills: map[string]int64{}}
	if len(shards) == 0 {
		return all
	}
	all.Now, all.Asked = shards[0].Now, shards[0].Asked
	maps.Copy(all.Workers, shards[0].Workers)
	for _, s := range shards {
		all.Schema = cmp.Or(all.Schema, s.Schema)
		all.Windows += s.Windows
		all.Held = all.Held || s.Held
		for field, text := range s.Origins {
			if before, ok := all.Origins[field]; !ok || compareOrigins(before, text) < 0 {
				all.Origins[field] = text
			}
		}
		for key, ms := range s.Since {
			all.Since[key] = max(all.Since[key], ms)
		}
	}
	for field := range shards[0].Ledger { // a partition that shard 0 lacks has no position
		if text, ok := shards[FurthestBehind(shards, field)].Ledger[field]; ok {
			all.Ledger[field] = text
		}
	}
	all.refills(shards)
	for i, s := range shards {
		if s.Schema != all.Schema {
			all.Unlike = append(all.Unlike, i)
		}
	}
	return all
}

// refills sets the refills that some shard hasn't finished. A finished one stays, unless a shard that was
// never refilled is behind its offset: the partition would look as if it were being refilled.
func (s *State) refills(shards []State) {
	through := map[string]int64{}
	for _, shard := range shards {
		for field, to := range shard.Refills {
			at, err := Counted(shard.Ledger[field])
			if _, begun := shard.Ledger[field]; !begun || err != nil || at.From < to {
				s.Refills[field] = max(s.Refills[field], to)
			} else {
				through[field] = max(through[field], to)
			}
		}
	}
	for field, to := range through {
		at, err := Counted(s.Ledger[field])
		if _, goesOn := s.Refills[field]; !goesOn && err == nil && to <= at.From {
			s.Refills[field] = to
		}
	}
}

// FurthestBehind returns the shard whose position of a partition is the lowest, the first one of several.
// It is also the position in Together, if that has one.
func FurthestBehind(shards []State, field string) int {
	last := 0
	for i, s := range shards {
		if ComparePositions(s.Ledger[field], shards[last].Ledger[field]) < 0 {
			last = i
		}
	}
	return last
}

// ComparePositions orders the texts of positions: first "", then invalid texts, torn positions, and other
// positions. Positions are ordered by the offset before which every event counts; of equal ones the one
// without a sweep is first, as its To is the same offset.
func ComparePositions(a, b string) int {
	kind := func(text string) (int, Position) {
		p, err := Counted(text)
		switch {
		case text == "":
			return 0, p
		case err != nil:
			return 1, p
		case strings.HasPrefix(text, TornMark):
			return 2, p
		}
		return 3, p
	}
	x, p := kind(a)
	y, q := kind(b)
	return cmp.Or(cmp.Compare(x, y), cmp.Compare(p.From, q.From), cmp.Compare(p.To, q.To), cmp.Compare(p.Hash, q.Hash), cmp.Compare(a, b))
}

// compareOrigins orders origins by time, then offset. Invalid texts are last, so that a reader notices
// them.
func compareOrigins(a, b string) int {
	o, err1 := ParseOrigin(a)
	p, err2 := ParseOrigin(b)
	if err1 != nil || err2 != nil {
		return cmp.Or(cmp.Compare(wrong(err1), wrong(err2)), cmp.Compare(a, b))
	}
	return cmp.Or(cmp.Compare(o.Time, p.Time), cmp.Compare(o.Offset, p.Offset))
}

func wrong(err error) int {
	if err != nil {
		return 1
	}
	return 0
}
