package e2e

// Snapshots: taken by one replica of several while events come, and whether what there is would bring the
// standings back if Redis were lost.

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
)

// snapshot is one, as it is listed.
type snapshot struct {
	Name    string
	Bytes   int64
	Shards  int
	Windows int
	Rows    int64 // a few standings may be read twice
}

// snapshotsOf are those that there are, the newest first.
func snapshotsOf(t *testing.T, place *harness.Place) []snapshot {
	t.Helper()
	var r struct{ Snapshots []snapshot }
	if err := json.Unmarshal(place.Command(t, "snapshot", "list", "--json"), &r); err != nil {
		t.Fatal(err)
	}
	return r.Snapshots
}

func TestSnapshotsAreTakenWhoeverLeads(t *testing.T) {
	t.Parallel()
	for _, shards := range harness.OneAndFive(t) {
		t.Run(shards+" shards", func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "snapshots")
			place := harness.New(t, harness.Options{Partitions: 2, Settings: map[string]string{"redis.shards": shards, "snapshots.url": "dir:" + dir}})
			publish := func(from, to int) {
				var all []*kgo.Record
				for i := from; i < to; i++ {
					all = append(all, harness.Record(i%2, fmt.Sprintf(`{"user_id":"m%d","points":1}`, i%500)))
				}
				place.Publish(t, all...)
			}
			publish(0, 2000)
			one, other := place.Start(t), place.Start(t)
			place.AwaitCaughtUp(t, within)
			taken := func(before int) []snapshot {
				t.Helper()
				var all []snapshot
				harness.Eventually(t, within, func() string {
					if all = snapshotsOf(t, place); len(all) <= before {
						return fmt.Sprintf("there are %d snapshots", len(all))
					}
					return ""
				})
				return all
			}
			if all := taken(0); len(all) != 1 {
				t.Errorf("two replicas took %d", len(all))
			}
			publish(2000, 3000)
			place.AwaitCaughtUp(t, within)
			one.Kill()
			other.Kill()
			if err := os.RemoveAll(dir); err != nil { // so that another is due
				t.Fatal(err)
			}
			third := place.Start(t) // which leads once the lease of who was killed is over
			m := &taken(0)[0]
			harness.Eventually(t, within, func() string {
				is, err := third.Scrape(t.Context())
				if err != nil {
					return err.Error()
				}
				for series, want := range map[string]float64{
					`standings_snapshot_leader`: 1, `standings_snapshots_kept`: 1, `standings_snapshot_newest_bytes`: float64(m.Bytes),
					`standings_recovery{by="log"}`: 1, `standings_recovery{by="nothing"}`: 0, `standings_recovery_nothing_since_timestamp_seconds`: 0,
				} {
					if got, ok := is[series]; !ok || got != want {
						return fmt.Sprintf("%s is %v, %v", series, got, ok)
					}
				}
				return ""
			})
			if m.Windows != 3*m.Shards || m.Rows < 3*500 {
				t.Errorf("it has %d rows in %d windows", m.Rows, m.Windows)
			}
			if out := string(place.Command(t, "snapshot", "verify")); !strings.Contains(out, m.Name+" is whole") {
				t.Errorf("verify says %q", out)
			}
		})
	}
}

// recoveryFinding is what check says of a lost Redis.
func recoveryFinding(t *testing.T, place *harness.Place) (result, found string) {
	t.Helper()
	var r struct {
		Findings []struct{ Section, Result, Found string }
	}
	if err := json.Unmarshal(place.Command(t, "check", "--json"), &r); err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Findings {
		if f.Section == "recovery" {
			return f.Result, f.Found
		}
	}
	t.Fatal("check says nothing of it")
	return "", ""
}

func TestWhetherThePointsWouldComeBackIsKnownBeforeRedisIsLost(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "snapshots")
	place := harness.New(t, harness.Options{Partitions: 2, Settings: map[string]string{"snapshots.url": "dir:" + dir}})
	publish := func(n int) {
		var all []*kgo.Record
		for i := range n {
			all = append(all, harness.Record(i%2, fmt.Sprintf(`{"user_id":"m%d","points":1}`, i)))
		}
		place.Publish(t, all...)
	}
	says := func(result, found string) {
		t.Helper()
		harness.Eventually(t, within, func() string {
			if r, f := recoveryFinding(t, place); r != result || !strings.Contains(f, found) {
				return fmt.Sprintf("check says %s: %s", r, f)
			}
			return ""
		})
	}
	publish(200)
	one := place.Start(t)
	place.AwaitCaughtUp(t, within)
	harness.Eventually(t, within, func() string { // it looks, and takes its snapshot: both not again for the time that this takes
		is, err := one.Scrape(t.Context())
		if looked, kept := is[`standings_recovery{by="log"}`], is["standings_snapshots_kept"]; err != nil || looked != 1 || kept != 1 {
			return fmt.Sprintf("it has %v snapshots, and that the log would do is %v (%v)", kept, looked, err)
		}
		return ""
	})
	place.Command(t, "snapshot", "take") // that one may be of before all counted
	says("ok", "the log alone would bring the standings back, since 20")
	deleteTo := func(offset int64) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		var offsets kadm.Offsets
		offsets.Add(kadm.Offset{Topic: place.Topic, Partition: 1, At: offset, LeaderEpoch: -1})
		if r, err := place.Admin().DeleteRecords(ctx, offsets); err != nil || r.Error() != nil {
			t.Fatal(err, r.Error())
		}
	}
	deleteTo(100)
	says("ok", "the snapshot "+snapshotsOf(t, place)[0].Name)
	says("ok", " would bring the standings back, since after ")
	publish(100)
	place.AwaitCaughtUp(t, within)
	deleteTo(120)
	says("warning", "begins at offset 100 of "+place.Topic+"/1, and the log only at 120")
	place.Command(t, "snapshot", "take")
	says("ok", "the snapshot "+snapshotsOf(t, place)[0].Name)
	place.TerminateAll(t) // it would take another
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	says("warning", "there is no whole snapshot")
	says("warning", "points would be lost, since after ")
	if found := place.Command(t, "check"); !strings.Contains(string(found), "take one now") && !strings.Contains(string(found), "takes one now") {
		t.Errorf("it doesn't say what to do: %s", found)
	}

	// Since when, whoever looks from now on.
	delete(place.Settings, "snapshots.url")
	nothingSince := func() (since float64) {
		t.Helper()
		c := place.Start(t)
		harness.Eventually(t, within, func() string {
			is, err := c.Scrape(t.Context())
			if err != nil {
				return err.Error()
			}
			if since = is["standings_recovery_nothing_since_timestamp_seconds"]; is[`standings_recovery{by="nothing"}`] != 1 || since == 0 {
				return fmt.Sprintf("nothing would bring them back since %v", since)
			}
			return ""
		})
		place.TerminateAll(t)
		return since
	}
	first := nothingSince()
	says("warning", ", since "+time.Unix(int64(first), 0).UTC().Format(time.RFC3339)+": ")
	time.Sleep(time.Until(time.Unix(int64(first)+2, 0))) // another second of Unix time
	if next := nothingSince(); next != first {
		t.Errorf("the next replica says since %v, and not %v", next, first)
	}
}
