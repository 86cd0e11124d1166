package e2e

// Final windows in an archive: taken by one of several replicas, whichever leads, and read by SQL.

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	_ "modernc.org/sqlite" // the archive's own

	"github.com/standings/standings/test/harness"
)

var reopenedUntil = regexp.MustCompile(`reopened \d+`)

// archivedRows are a window's in an archive, by rank, each as "member points".
func archivedRows(t *testing.T, path, period, name string) (revision int64, all []string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro&_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // it was read
	rows, err := db.QueryContext(t.Context(), "SELECT rank, member, points, revision FROM results WHERE board = 'global' AND period = ? AND name = ? ORDER BY rank", period, name)
	if err != nil {
		return 0, nil // there is no table yet
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

func TestFinalWindowsAreInTheArchiveWhoeverLeads(t *testing.T) {
	t.Parallel()
	for _, shards := range []string{"1", "5"} {
		t.Run(shards+" shards", func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "archive.db")
			place := harness.New(t, harness.Options{Partitions: 2, Settings: map[string]string{
				"seal": "true", "lateness": "1h", "redis.shards": shards, "archive.url": "sqlite:" + path,
			}})
			then := time.Now().UTC().AddDate(0, 0, -10)
			year, week := then.ISOWeek()
			name := fmt.Sprintf("%d-W%02d", year, week)
			var want []string
			earned := func(from, to int, at time.Time) {
				var all []*kgo.Record
				for i := from; i < to; i++ { // each has other points: the order is known without the time
					r := harness.Record(i%2, fmt.Sprintf(`{"user_id":"m%d","points":%d}`, i, 1000-i))
					r.Timestamp = at
					all = append(all, r)
				}
				place.Publish(t, all...)
			}
			for i := range 300 {
				want = append(want, fmt.Sprintf("m%d %d", i, 1000-i))
			}
			earned(0, 300, then)
			earned(0, 1, time.Now())
			first := place.Start(t)
			place.AwaitCaughtUp(t, within)
			first.Kill() // the next leader waits for the end of its lease
			one := place.Start(t)
			harness.Eventually(t, 2*within, func() string {
				if _, is := archivedRows(t, path, "weekly", name); !slices.Equal(is, want) {
					return fmt.Sprintf("the archive has %d rows", len(is))
				}
				return ""
			})
			earned(250, 350, then) // which are late for it
			place.AwaitCaughtUp(t, within)
			one.Kill()
			place.Start(t)
			place.AwaitCaughtUp(t, within)
			if revision, is := archivedRows(t, path, "weekly", name); revision != 1 || !slices.Equal(is, want) {
				t.Fatalf("revision %d has %d rows", revision, len(is))
			}

			out := string(place.Command(t, "reopen", "global", "weekly", name, "--reason", "a test", "--for", "1h"))
			if !strings.Contains(out, "revision 1, isn't final any more") {
				t.Errorf("reopen says %q", out)
			}
			for i := 300; i < 320; i++ {
				want = append(want, fmt.Sprintf("m%d %d", i, 1000-i))
			}
			earned(300, 320, then)
			place.AwaitCaughtUp(t, within)
			place.TerminateAll(t)
			for shard := range place.Shards() { // the hour is over
				key := place.KeyIn(shard, "final")
				record := reopenedUntil.ReplaceAllString(place.RedisClient().HGet(t.Context(), key, "global:weekly:"+name).Val(), "reopened 1")
				if err := place.RedisClient().HSet(t.Context(), key, "global:weekly:"+name, record).Err(); err != nil {
					t.Fatal(err)
				}
			}
			place.Start(t)
			harness.Eventually(t, 2*within, func() string {
				if revision, is := archivedRows(t, path, "weekly", name); revision != 2 || !slices.Equal(is, want) {
					return fmt.Sprintf("revision %d has %d rows", revision, len(is))
				}
				return ""
			})
		})
	}
}
