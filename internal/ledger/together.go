package ledger

import (
	"cmp"
	"maps"
	"strings"
)

// Together is what the states of all shards come to as one, for whoever shows it:
//
//   - a partition is at the position of the shard that is furthest behind, a torn one before
//     one that isn't. Where a shard has no position, there is none: its boards have none of
//     the partition's events.
//   - it is refilled as long as one shard is, and up to the furthest offset of these.
//   - its origin is the latest: what one shard lacks, the boards lack. So is the time from which
//     on a period is counted that was added.
//   - windows are summed: a window is listed by each shard that has a member of it.
//   - held if one is. Clock and workers are those of shard 0, the schema that of the first
//     shard that has one.
//
// Of one state it is that state. It shares no map with those of several.
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
	for field := range shards[0].Ledger { // a partition that isn't there is in no ledger of all
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

// refills are those of shards that haven't come as far yet. Those that are through stay, unless
// a shard that was never refilled is behind them: it would seem to be refilled.
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

// FurthestBehind is the shard whose position of a partition is furthest behind, of several the
// first: Together's position is its, if it has one.
func FurthestBehind(shards []State, field string) int {
	last := 0
	for i, s := range shards {
		if ComparePositions(s.Ledger[field], shards[last].Ledger[field]) < 0 {
			last = i
		}
	}
	return last
}

// ComparePositions orders the texts of positions: none, what is no position, the torn ones,
// the others; each by the offset before which every event counts, and of equal ones one without
// a sweep first: its To is the same.
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

// compareOrigins orders origins by time, then offset. What is no origin is the latest, so that
// whoever reads it finds it.
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
