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
	for _, shards := range harness.OneAndFive(t) {
		t.Run(shards+" shards", func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "archive.db")
			place := harness.New(t, harness.Options{Partitions: 2, Settings: map[string]string{
				"seal": "true", "lateness": "1h", "redis.shards": shards, "archive.url": "sqlite:" + path, "archive.interval": "1m",
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
				// A backup of it before it was final, as revision 0, has these rows too.
				if revision, is := archivedRows(t, path, "weekly", name); revision != 1 || !slices.Equal(is, want) {
					return fmt.Sprintf("revision %d has %d rows", revision, len(is))
				}
				return ""
			})
			// What takes events still has a backup.
			harness.Eventually(t, 2*within, func() string {
				if revision, is := archivedRows(t, path, "yearly", time.Now().UTC().Format("2006")); revision != 0 || len(is) == 0 {
					return fmt.Sprintf("the backup of the year is of revision %d and has %d rows", revision, len(is))
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
			if out := string(place.Command(t, "archive", "list", "--period", "weekly", "--json")); !strings.Contains(out, `"reopened_why": "a test"`) {
				t.Errorf("archive list says %s", out)
			}
		})
	}
}

// The year ends in a zone of its own: in one moment a month and the year end, a week that lies in both goes on,
// and what comes a millisecond later is of the next. All of them become final, and are archived as they are.
func TestWhatEndsWithTheYearIsFinalAndInTheArchive(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "archive.db")
	place := harness.New(t, harness.Options{Partitions: 1, Settings: map[string]string{
		"seal": "true", "lateness": "1h", "time_zone": "America/New_York", "archive.url": "sqlite:" + path,
		"periods.weekly.retention": "36500d", "periods.monthly.retention": "36500d",
	}})
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	year := time.Now().In(zone).Year()
	for time.Since(time.Date(year, 2, 2, 0, 0, 0, 0, zone)) < 24*time.Hour { // so that its first month is over
		year--
	}
	border := time.Date(year, 1, 1, 0, 0, 0, 0, zone)
	var all []*kgo.Record
	for i, at := range []time.Time{border.Add(-time.Millisecond), border, border.Add(time.Millisecond)} {
		for member := range 4 {
			r := harness.Record(0, fmt.Sprintf(`{"user_id":"m%d","points":%d}`, member, (9-member)*[]int{1, 10, 100}[i]))
			r.Timestamp = at
			all = append(all, r)
		}
	}
	now := harness.Record(0, `{"user_id":"m0","points":7}`)
	now.Timestamp = time.Now()
	place.Publish(t, append(all, now)...)
	place.Start(t)
	place.AwaitCaughtUp(t, within)
	place.Start(t) // which looks what is due as soon as it has the partition
	rows := func(factor int) (all []string) {
		for member := range 4 {
			all = append(all, fmt.Sprintf("m%d %d", member, (9-member)*factor))
		}
		return all
	}
	weekYear, week := border.Add(-time.Millisecond).ISOWeek()
	weekBefore := fmt.Sprintf("%d-W%02d", weekYear, week)
	weekYear, week = border.ISOWeek()
	weekAfter := fmt.Sprintf("%d-W%02d", weekYear, week)
	wanted := map[[2]string][]string{
		{"yearly", fmt.Sprint(year - 1)}:                        rows(1),
		{"monthly", border.AddDate(0, 0, -1).Format("2006-01")}: rows(1),
		{"monthly", border.Format("2006-01")}:                   rows(110),
		{"weekly", weekBefore}:                                  rows(1),
		{"weekly", weekAfter}:                                   rows(110),
	}
	if weekBefore == weekAfter {
		wanted[[2]string{"weekly", weekAfter}] = rows(111)
	}
	for of, want := range wanted {
		harness.Eventually(t, 2*within, func() string {
			if revision, is := archivedRows(t, path, of[0], of[1]); revision != 1 || !slices.Equal(is, want) {
				return fmt.Sprintf("%s %s has revision %d and %v in the archive, and not %v", of[0], of[1], revision, is, want)
			}
			return ""
		})
	}
	place.TerminateAll(t)
	place.Check(t)
}
