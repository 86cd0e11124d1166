package reading

// Whether a window is complete and current as it was read.

import "slices"

// States of a window. If several apply, the first one is the window's state.
const (
	StateLost       = "lost"       // a key is missing in Redis: the window's, or that of the ledger
	StateEmpty      = "empty"      // no event has counted yet, or the retention is over
	StateBackup     = "backup"     // the archive's copy of a window that was still open: later events are not in it
	StateArchived   = "archived"   // the archive's copy of a final window
	StateRefilling  = "refilling"  // Redis was lost or the boards were rebuilt, and the log is being read again
	StateIncomplete = "incomplete" // events are missing permanently
	StateStalled    = "stalled"    // the events of a partition do not count at the moment
	StateLagging    = "lagging"    // events wait to be counted
	StateCurrent    = "current"
)

// State returns the window's state, with the consumers' progress at the time of the read. While Redis is being
// refilled no window is known to be empty.
func (v *View) State() string {
	switch {
	case v.Lost != "":
		return StateLost
	case !v.Listed && len(v.Refilling) == 0:
		return StateEmpty
	case v.Archived && v.Revision == 0:
		return StateBackup
	case v.Archived:
		return StateArchived
	case len(v.Refilling) > 0:
		return StateRefilling
	case len(v.Incomplete) > 0:
		return StateIncomplete
	case len(v.Stalled()) > 0:
		return StateStalled
	case v.CatchingUp():
		return StateLagging
	}
	return StateCurrent
}

// Complete reports whether every record that belongs in the window either counts or is still in the log: none was
// deleted before it could count. For a backup this is unknown, and the result is false.
func (v *View) Complete() bool {
	return v.Lost == "" && len(v.Incomplete) == 0 && v.State() != StateBackup
}

// StalledPartition is a partition whose events do not count at the moment.
type StalledPartition struct {
	Partition string `json:"partition"`
	// Reason is that of a halt or a wait, NoConsumer, or transaction.
	Reason string `json:"reason"`
}

// NoConsumer is the reason of a partition whose consumer does not report.
const NoConsumer = "no_consumer"

// Stalled returns the partitions whose events do not count at the moment.
func (v *View) Stalled() []StalledPartition {
	all := []StalledPartition{}
	for _, r := range slices.Concat(v.Halted, v.Waiting, v.Blocked) {
		all = append(all, StalledPartition{r.Field, r.Line.Reason})
	}
	for _, r := range v.Silent {
		all = append(all, StalledPartition{r.Field, NoConsumer})
	}
	return all
}
