package reading

// Whether what was read of a window is all of it.

import "slices"

// States of a window. Of several that apply the first is its state.
const (
	Lost       = "lost"        // Redis has lost it, or what says which events are in it
	Refilling  = "refilling"   // Redis was lost or the boards were rebuilt, and the log is being read again
	Behind     = "behind"      // events aren't counted yet, or nobody counts them
	Incomplete = "incomplete"  // events from before a time are missing for good
	Backup     = "backup"      // a copy of a window that took events still: what came later isn't in it
	NotCounted = "not_counted" // no event has come, or its retention is over
	Whole      = "whole"
)

// State is that of the window as it was read, with how far what counts its events had come then.
func (v *View) State() string {
	switch {
	case v.Lost != "":
		return Lost
	case len(v.Refilling) > 0:
		return Refilling
	case v.CatchingUp():
		return Behind
	case len(v.Incomplete) > 0:
		return Incomplete
	case v.Archived && v.Revision == 0:
		return Backup
	case !v.Listed:
		return NotCounted
	}
	return Whole
}

// Complete reports whether no record that could be in the window is missing from the log that was
// read: nothing of it was deleted before it could count. Of a backup that isn't known.
func (v *View) Complete() bool { return v.Lost == "" && len(v.Incomplete) == 0 && v.State() != Backup }

// Stopped are the partitions whose events nobody counts.
func (v *View) Stopped() []string {
	var all []string
	for _, r := range slices.Concat(v.Halted, v.Waiting, v.Silent) {
		all = append(all, r.Field)
	}
	return all
}
