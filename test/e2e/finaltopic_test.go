package e2e

// Final windows in a topic and in an archive: the leader among several replicas writes them, and an
// independent client and SQL read them.

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	_ "modernc.org/sqlite"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

// publishedRows returns the standings of a window's revision in the topic, by rank, each as "member points", and
// how often the topic contains that revision. Rows outside of a header and its trailer, missing rows and rows
// out of order are errors.
func publishedRows(t *testing.T, place *harness.Place, window string, revision int64) (times int, all []string) {
	t.Helper()
	type value struct {
		Type, Board, Period, Window string
		Revision, Rank, Points      int64
		Member                      string
		Members                     int64
	}
	var open *value
	place.EachRecord(t, place.Topic+".final", func(r *kgo.Record) {
		var v value
		if err := json.Unmarshal(r.Value, &v); err != nil {
			t.Fatal(err)
		}
		of := fmt.Sprintf("%s:%s:%s:%d", v.Board, v.Period, v.Window, v.Revision)
		suffix := v.Type
		if v.Type == "standing" {
			suffix = fmt.Sprint(v.Rank)
		}
		if string(r.Key) != of+":"+suffix {
			t.Fatalf("the key %s of %s", r.Key, r.Value)
		}
		if of != fmt.Sprint(window, ":", revision) {
			return
		}
		switch v.Type {
		case "header":
			open, all = &v, nil
		case "standing":
			if all = append(all, fmt.Sprint(v.Member, " ", v.Points)); open == nil || v.Rank != int64(len(all)) {
				t.Fatalf("%s is the row %d", r.Value, len(all))
			}
		case "trailer":
			if open == nil || v.Members != int64(len(all)) || open.Members != v.Members {
				t.Fatalf("%s behind %d rows", r.Value, len(all))
			}
			open = nil
			times++
		}
	})
	if open != nil {
		t.Fatal("a header without a trailer")
	}
	return times, all
}

var reopenedUntil = regexp.MustCompile(`"reopened":\d+`)

// archivedRows returns a window's rows in an archive, by rank, each as "member points".
func archivedRows(t *testing.T, path, period, name string) (revision int64, all []string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro&_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // it was read
	rows, err := db.QueryContext(t.Context(), "SELECT rank, member, points, revision FROM results WHERE board = 'global' AND period = ? AND name = ? ORDER BY rank", period, name)
	if err != nil {
		return 0, nil // the table does not exist yet
	}
	defer rows.Close() //nolint:errcheck // Err is looked at
	for rows.Next() {
		var rank, points int64
		var member string
		if err := rows.Scan(&rank, &member, &points, &revision); err != nil {
			t.Fatal(err)
		}
		if all = append(all, fmt.Sprint(member, " ", points)); rank != int64(len(all)) {
			t.Fatalf("rank %d is the row %d", rank, len(all))
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return revision, all
}

func TestFinalWindowsArePublishedWhoeverLeads(t *testing.T) {
	testenv.SlowEmbedded(t)
	t.Parallel()
	type variant struct {
		shards   string
		archived bool
	}
	variants := []variant{{harness.ShardsByTurns(t), true}}
	if !testing.Short() {
		variants = append(variants, variant{"1", false})
	}
	for _, c := range variants {
		t.Run(fmt.Sprintf("%s shards, archive %v", c.shards, c.archived), func(t *testing.T) {
			t.Parallel()
			settings, path := map[string]string{"seal": "true", "lateness": "1h", "redis.shards": c.shards}, ""
			if c.archived {
				path = filepath.Join(t.TempDir(), "archive.db")
				settings["archive.url"], settings["archive.interval"] = "sqlite:"+path, "1m"
			}
			place := harness.New(t, harness.Options{Partitions: 2, Settings: settings})
			place.Settings["kafka.final_topic"] = place.Topic + ".final"
			then := time.Now().UTC().AddDate(0, 0, -10)
			year, week := then.ISOWeek()
			name := fmt.Sprintf("%d-W%02d", year, week)
			window := "global:weekly:" + name
			var want []string
			earned := func(from, to int, at time.Time) {
				var all []*kgo.Record
				for i := from; i < to; i++ { // each has different points, so the order does not depend on the time
					r := harness.Record(i%2, fmt.Sprintf(`{"user_id":"m%d","points":%d}`, i, 10_000-i))
					r.Timestamp = at
					all = append(all, r)
				}
				place.Publish(t, all...)
			}
			for i := range 3000 {
				want = append(want, fmt.Sprintf("m%d %d", i, 10_000-i))
			}
			published := func(revision int64) {
				t.Helper()
				harness.Eventually(t, 2*within, func() string {
					times, is := publishedRows(t, place, window, revision)
					if times != 1 || !slices.Equal(is, want) {
						return fmt.Sprintf("revision %d is there %d times, with %d rows", revision, times, len(is))
					}
					if !c.archived {
						return ""
					}
					if archived, is := archivedRows(t, path, "weekly", name); archived != revision || !slices.Equal(is, want) {
						return fmt.Sprintf("revision %d of the archive has %d rows", archived, len(is))
					}
					// An open window still has a backup.
					if revision, is := archivedRows(t, path, "yearly", time.Now().UTC().Format("2006")); revision != 0 || len(is) == 0 {
						return fmt.Sprintf("the backup of the year is of revision %d and has %d rows", revision, len(is))
					}
					return ""
				})
			}
			earned(0, 3000, then)
			earned(0, 1, time.Now())
			first := place.Start(t)
			place.AwaitCaughtUp(t, within)
			first.Kill() // at any point of its work; the next leader waits until its lease expires
			one := place.Start(t)
			published(1)
			earned(2500, 3500, then) // late for the final window
			place.AwaitCaughtUp(t, within)
			one.Kill()
			place.Start(t)
			place.AwaitCaughtUp(t, within)
			published(1)

			place.Command(t, "reopen", "global", "weekly", name, "--reason", "a test", "--for", "1h")
			for i := 3000; i < 3020; i++ {
				want = append(want, fmt.Sprintf("m%d %d", i, 10_000-i))
			}
			earned(3000, 3020, then)
			place.AwaitCaughtUp(t, within)
			place.TerminateAll(t)
			for shard := range place.Shards() { // as if the hour had passed
				key := place.KeyIn(shard, "final")
				record := reopenedUntil.ReplaceAllString(place.RedisClient().HGet(t.Context(), key, window).Val(), `"reopened":1`)
				if err := place.RedisClient().HSet(t.Context(), key, window, record).Err(); err != nil {
					t.Fatal(err)
				}
			}
			last := place.Start(t)
			published(2)
			if c.archived {
				if out := string(place.Command(t, "archive", "list", "--period", "weekly", "--json")); !strings.Contains(out, `"reopened_why": "a test"`) {
					t.Errorf("archive list says %s", out)
				}
			}
			harness.Eventually(t, within, func() string {
				m, err := last.Exposition(t.Context())
				if err != nil || !strings.Contains(m, "\nstandings_final_topic_waiting_windows 0\n") || !strings.Contains(m, "\nstandings_leader 1\n") {
					return fmt.Sprint("its metrics don't say that nothing waits: ", err)
				}
				return ""
			})
			last.Terminate(t)
		})
	}
}
