package ledger

// Reading describes which events of a partition to read next while its shards are at different positions.
// It counts an event if the event's shard takes part in the reading and doesn't have the event yet.
type Reading struct {
	From int64
	// To is the end of a reading that continues sweeps: a sweep's end can't be moved. If it is 0, the
	// reading continues up to the log's end.
	To int64
	// Rules are the rules of the sweeps that the reading continues; 0 for the reader's own rules.
	Rules Fingerprint
	// Without marks the shards that don't take part, by number, and keep their positions. If it is nil, all
	// take part.
	Without []bool
}

// Resumes reports whether the reading continues sweeps.
func (r Reading) Resumes() bool { return r.To > 0 }

// For reports whether a shard takes part in the reading.
func (r Reading) For(shard int) bool { return r.Without == nil || !r.Without[shard] }

// Next returns the next reading to level the shards of a partition:
//
//   - If no shard is in a sweep, all shards take part, from the lowest position on. A shard that is further on takes
//     part from its own position.
//   - Otherwise, the sweeps that end first are read again, up to their common end. The shards without a sweep that are
//     within that range take part too, by the same rules. Other shards don't: those before the range would make it
//     longer, and those in another sweep, or in one by other rules, can't stop at its end.
//
// A reading that resumes finishes at least one sweep, so that the last reading is of the first kind. In the
// worst case, if several masters went back to different positions, the events between these are read once
// for each of them.
func (all Positions) Next() Reading {
	r := Reading{From: all.Lowest()}
	for _, p := range all {
		if p.Sweeping() && (r.To == 0 || p.To < r.To) {
			r.To, r.Rules = p.To, p.Rules
		}
	}
	if r.To == 0 {
		return r
	}
	r.From = r.To
	for _, p := range all {
		if p.Sweeping() && p.To == r.To && p.Rules == r.Rules {
			r.From = min(r.From, p.From)
		}
	}
	for i, p := range all {
		if p.Sweeping() && (p.To != r.To || p.Rules != r.Rules) || !p.Sweeping() && p.From < r.From {
			if r.Without == nil {
				r.Without = make([]bool, len(all))
			}
			r.Without[i] = true
		}
	}
	return r
}
