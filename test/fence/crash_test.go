package fence

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

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

// another is the events of a sweep for whoever missed one.
func another() []*kgo.Record { return earned(5, 60_000, 40_000, 1) }

// awaitSweep waits until a consumer is in the middle of a sweep of the first partition.
func awaitSweep(t *testing.T, place *harness.Place) {
	t.Helper()
	place.CatchSweep(t, within, harness.Sweep{More: another})
}

func TestASweepThatCrashesIsFinishedByAnOwnerThatCutsOtherwise(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{})
	place.Publish(t, earned(3, 60_000, 40_000, 1)...)
	for _, cuts := range []map[string]string{
		{"piece_time": "500us"},
		{"piece_time": "20ms", "fold_memory": "32MiB"},
		{"piece_time": "1ms"},
		{"piece_time": "500us", "kafka.fetch_bytes": "64KiB"},
	} {
		at := place.KillInSweep(t, within, harness.Sweep{
			Start: func() *harness.Consumer { return place.Start(t, cuts) },
			More:  another,
		})
		t.Logf("with %v: killed at %v", cuts, at)
	}
	place.Start(t, map[string]string{"piece_time": "3ms"})
	finish(t, place)
}

func TestASweepTooLargeForItsSuccessorIsFinishedInSeveralReadings(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{})
	// Where a machine is slow, the sweep has hardly more than the least of records: by long
	// ids those are too many for the memory, too.
	long := func(records []*kgo.Record) []*kgo.Record {
		for _, r := range records {
			r.Value = bytes.Replace(r.Value, []byte(`"m`), []byte(`"`+strings.Repeat("m", 200)), 1)
		}
		return records
	}
	place.Publish(t, long(earned(4, 300_000, 280_000, 1))...)
	at := place.KillInSweep(t, within, harness.Sweep{
		Start:   func() *harness.Consumer { return place.Start(t, map[string]string{"piece_time": "500us"}) },
		More:    func() []*kgo.Record { return long(earned(6, 300_000, 280_000, 1)) },
		Records: 150_000,
	})

	tight := place.Start(t, map[string]string{"fold_memory": "32MiB"})
	line := tight.Log.Await(t, within, "going on with a sweep")
	resumed := strings.TrimPrefix(fmt.Sprint(line.Fields["position"]), "[")
	if want, _, _ := strings.Cut(at.String(), "@"); !strings.HasPrefix(resumed, want+"@") {
		t.Fatalf("it goes on at %s, after a crash in %v", resumed, at)
	}
	place.AwaitCaughtUp(t, within)
	read, log := tight.BytesRead(t), place.LogBytes(t)
	records := float64(len(place.Published()))
	sweep, behind := float64(at.To-at.From)/records, 1-float64(at.To)/records
	t.Logf("a sweep of %v: read %d bytes of a log of %d, of which the sweep is %.2f", at, read, log, sweep)
	if readings := (float64(read)/float64(log) - behind) / sweep; readings < 2 {
		t.Errorf("the sweep was read %.1f times: the memory was to be too small for less than twice", readings)
	}
	finish(t, place)
}
