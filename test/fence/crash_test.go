package fence

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/test/harness"
)

func TestACrashBetweenApplyAndCommitCountsNothingTwice(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Partitions: 2, Settings: map[string]string{"kafka.commit_interval": "1h"}})
	place.Publish(t, earned(1, 3000, 400, 2)...)
	first := place.Start(t)
	place.AwaitCaughtUp(t, within)
	first.Kill()
	if committed := place.Committed(t); !maps.Equal(committed, map[int]int64{0: 0, 1: 0}) {
		t.Fatalf("the crash was to come before a commit, and Kafka has %v", committed)
	}
	// Where no event follows, whoever comes next commits for the dead one.
	idle := place.Start(t, map[string]string{"kafka.commit_interval": "100ms"})
	place.AwaitCommitted(t, within)
	if counts := idle.Terminate(t); counts.Consumed != 0 {
		t.Errorf("without events it counted %+v", counts)
	}

	late := earned(2, 500, 400, 2)
	place.Publish(t, late...)
	second := place.Start(t)
	place.AwaitCaughtUp(t, within)
	counts := second.Terminate(t)
	place.Check(t)
	if counts.Consumed != int64(len(late)) || counts.Repeated != 0 {
		t.Errorf("the second consumer read other events than the %d after the ledger: %+v", len(late), counts)
	}
	if committed, ends := place.Committed(t), place.Ends(t); !maps.Equal(committed, ends) {
		t.Errorf("an orderly end commits what counts: %v of %v", committed, ends)
	}
}

// awaitSweep waits until the first partition's ledger stands within a sweep of so many
// records, past a position of before.
func awaitSweep(t *testing.T, place *harness.Place, records int64, before string) ledger.Position {
	t.Helper()
	at := ledger.Position{}
	deadline := time.Now().Add(within)
	for ; time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		text := place.Ledger(t)[0]
		if text == before {
			continue
		}
		var err error
		if at, err = ledger.Parse(text); err == nil && at.Sweeping() && at.To-at.From >= records {
			return at
		}
		if behind := place.Behind(t.Context()); behind == "" {
			t.Fatalf("no sweep of %d records was seen: the ledger came to %s", records, text)
		}
	}
	t.Fatalf("no sweep of %d records was seen within %v", records, within)
	return at
}

func TestASweepThatCrashesIsFinishedByAnOwnerThatCutsOtherwise(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{})
	place.Publish(t, earned(3, 60_000, 40_000, 1)...)
	before := ""
	for _, cuts := range []map[string]string{
		{"piece_time": "500us"},
		{"piece_time": "20ms", "fold_memory": "32MiB"},
		{"piece_time": "1ms"},
		{"piece_time": "500us", "kafka.fetch_bytes": "64KiB"},
	} {
		c := place.Start(t, cuts)
		at := awaitSweep(t, place, 1, before)
		c.Kill()
		before = place.Ledger(t)[0]
		t.Logf("with %v: killed at %v, the ledger stands at %s", cuts, at, before)
	}
	place.Start(t, map[string]string{"piece_time": "3ms"})
	finish(t, place)
}

func TestASweepTooLargeForItsSuccessorIsFinishedInSeveralReadings(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{})
	place.Publish(t, earned(4, 300_000, 280_000, 1)...)
	roomy := place.Start(t, map[string]string{"piece_time": "500us"})
	at := awaitSweep(t, place, 150_000, "")
	roomy.Kill()

	tight := place.Start(t, map[string]string{"fold_memory": "32MiB"})
	line := tight.Log.Await(t, within, "going on with a sweep")
	resumed := fmt.Sprint(line.Fields["position"])
	if want, _, _ := strings.Cut(at.String(), "@"); !strings.HasPrefix(resumed, want+"@") {
		t.Fatalf("it goes on at %s, after a crash in %v", resumed, at)
	}
	place.AwaitCaughtUp(t, within)
	read, log := tight.BytesRead(t), place.LogBytes(t)
	share := float64(at.To-at.From) / 300_000
	t.Logf("a sweep of %v: read %d bytes of a log of %d, of which the sweep is %.2f", at, read, log, share)
	if readings := (float64(read)/float64(log) - (1 - share)) / share; readings < 2 {
		t.Errorf("the sweep was read %.1f times: the memory was to be too small for less than twice", readings)
	}
	finish(t, place)
}
