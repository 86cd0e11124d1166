package reading

// Whether a window is complete and current as it was read.

import "slices"

// States of a window. If several apply, the first one is the window's state.
const (
	Lost       = "lost"        // Redis has lost the window, or the record of which events it holds
	Refilling  = "refilling"   // Redis was lost or the boards were rebuilt, and the log is being read again
	Behind     = "behind"      // some events are not counted yet, or no consumer counts them
	Incomplete = "incomplete"  // events before some time are missing permanently
	Backup     = "backup"      // a copy of a window that was still open: later events are not in it
	NotCounted = "not_counted" // no event has arrived, or the retention is over
	Whole      = "whole"
)

// State returns the window's state, with the consumers' progress at the time of the read.
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

// Complete reports whether every record that belongs in the window either counts or is still in the log: none was
// deleted before it could count. For a backup this is unknown, and the result is false.
func (v *View) Complete() bool { return v.Lost == "" && len(v.Incomplete) == 0 && v.State() != Backup }

// Stopped returns the partitions whose events no consumer counts.
func (v *View) Stopped() []string {
	var all []string
	for _, r := range slices.Concat(v.Halted, v.Waiting, v.Silent) {
		all = append(all, r.Field)
	}
	return all
}
