package simulate

// Snapshots, by seeds that have them.

import "testing"

func TestWhatASnapshotHasIsWhatTheLogSaysWhateverHappens(t *testing.T) {
	n := 100
	if many() {
		n = 300
	}
	r := lived(t, snapsFrom, n)
	t.Logf("%v", r)
	r.has(t, snapWhole, snapBack, snapBackAfter, snapSwapped, snapRebuilt, snapLeft, snapBusy, snapTorn, snapMissing, snapBans, snapMoving,
		snapSealed, snapProcess, snapFinal, snapHidden, snapAgain, snapSweep, snapMoved, snapAdded,
		crash+": "+snaps, slow+": "+snaps, lateDone+": "+snaps, lostAnswer+": "+snaps)
	if many() {
		r.has(t, snapReopened, snapGone, snapOpened)
	}
}

func TestWhatIsRestoredIsWhatTheOracleSaysWhateverHappens(t *testing.T) {
	n := 60
	if many() {
		n = 200
	}
	r := lived(t, restoresFrom, n)
	t.Logf("%v", r)
	r.has(t, losesAll, restores, restored, restoredLate, restoreEnds, restoreBack, slow+": load", lateDone+": load", lostAnswer+": load")
}

func TestWhatIsRestoredOfSeveralShardsIsWhatTheOracleSaysWhateverHappens(t *testing.T) {
	n := 60
	if many() {
		n = 200
	}
	r := lived(t, shardedRestoresFrom, n)
	t.Logf("%v", r)
	r.has(t, losesAll, restores, restored, restoredLate, restoreEnds, restoreBack, restoredPart, slow+": load", lateDone+": load", lostAnswer+": load", crash+": of a rebuild", lateDone+": swap")
}
