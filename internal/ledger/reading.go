package ledger

// Reading is what is to be read next of a partition whose shards stand at different places.
// An event counts in it if its shard is of the reading, and doesn't have the event yet.
type Reading struct {
	From int64
	// To is where it ends, if it goes on with sweeps that were begun: a sweep's end can't be
	// moved. 0: it goes on as far as the log does.
	To int64
	// Rules are those that it is by: of the sweeps that it goes on with. 0: those of whoever reads.
	Rules Fingerprint
	// Without are the shards that it isn't for, by their numbers: nil where it is for all. They
	// keep their places.
	Without []bool
}

// Resumes reports whether the reading goes on with sweeps.
func (r Reading) Resumes() bool { return r.To > 0 }

// For reports whether the reading is for a shard.
func (r Reading) For(shard int) bool { return r.Without == nil || !r.Without[shard] }

// Next is the next reading, by which the shards of a partition are levelled:
//
//   - no shard is in a sweep: one reading for all, from the lowest on. A shard that stands
//     further on joins where it stands.
//   - else the sweeps that end first, all at one offset, are read again and brought there.
//     Shards between two sweeps that stand within that range go along, by the same rules. Others
//     would make the range longer (those before it) or can't end there (those in another sweep,
//     or in one by other rules): it isn't for them.
//
// A reading that resumes takes one sweep to its end at least, so that the last one is of the
// first kind. In the worst case, several masters that went back to different places, what
// lies between them is read once for each.
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
