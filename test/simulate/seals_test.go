package simulate

// Final windows, by seeds that have them.

import "testing"

func TestAFinalWindowIsWhatItsSealsLedgerSaysWhateverHappens(t *testing.T) {
	n := 100
	if !testing.Short() {
		n = 300
	}
	r := lived(t, sealsFrom, n)
	t.Logf("%v", r)
	r.has(t, closes, reopens, sealed, sealedAgain, sealedAfresh, refusedFinal, lateForAll, apartFinal,
		crash+": seal", slow+": seal", lateDone+": seal", dies+": seal")
}
