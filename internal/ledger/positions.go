package ledger

import "slices"

// Positions are the positions of a partition's shards. Together they denote a set of counted events.
type Positions []Position

// AllAt returns the positions of n shards that are all at an offset.
func AllAt(offset int64, n Shards) Positions {
	return slices.Repeat(Positions{At(offset)}, int(n))
}

// Lowest returns the offset before which every shard has counted every event.
func (all Positions) Lowest() int64 {
	lowest := all[0].From
	for _, p := range all[1:] {
		lowest = min(lowest, p.From)
	}
	return lowest
}

// Sweeping reports whether any shard has a batch applied in part.
func (all Positions) Sweeping() bool { return slices.ContainsFunc(all, Position.Sweeping) }

// Level reports whether all shards are at the same position.
func (all Positions) Level() bool {
	return !slices.ContainsFunc(all, func(p Position) bool { return p != all[0] })
}

// String returns the common position if all are equal, else all positions in order.
func (all Positions) String() string {
	if all.Level() {
		return all[0].String()
	}
	b := []byte{'['}
	for i, p := range all {
		if i > 0 {
			b = append(b, ' ')
		}
		b = p.Append(b)
	}
	return string(append(b, ']'))
}
