package chaos

// This file makes windows final and archives them while everything goes wrong: seasons that end one after
// another, with events before and after their ends.

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
)

const (
	seasons = 3
	// afterwards is the lateness of the seasons.
	afterwards = 2 * time.Second
	// finalWithin is the limit until a season is final and in the archive, once nothing is wrong: the owner
	// of the first partition must find that it is due.
	finalWithin = 3 * time.Minute
	// meanwhileWithin is the limit until an ended season is final while events arrive: a minute, if the
	// ledger is too far behind at the first attempt.
	meanwhileWithin = 90 * time.Second
)

// finals returns settings for a board whose windows become final: seasons that end at intervals during the
// faults.
func finals(archive string, lasts time.Duration) map[string]string {
	settings := map[string]string{"seal": "true", "archive.url": "sqlite:" + archive}
	for n := range seasons {
		section := "periods." + season(n) + "."
		end := time.Now().Add(starting + lasts*time.Duration(n+1)/seasons)
		maps.Copy(settings, map[string]string{
			section + "start": time.Now().Add(-time.Hour).UTC().Format(time.RFC3339), section + "end": end.UTC().Format(time.RFC3339),
			section + "lateness": afterwards.String(), section + "retention": "30d",
		})
	}
	return settings
}

func season(n int) string { return fmt.Sprintf("season-%d", n+1) }

// seasonEnd returns when a season ends.
func (w *world) seasonEnd(t testing.TB, n int) time.Time {
	t.Helper()
	end, err := time.Parse(time.RFC3339, w.place.Settings["periods."+season(n)+".end"])
	if err != nil {
		t.Fatal(err)
	}
	return end
}

// seasonBoard has the seasons and no other periods; other boards may have the seasons, too.
const seasonBoard = "seasons"

// withSeasons adds the board to a section of boards, written as JSON.
func withSeasons(boards string) string {
	var names []string
	for n := range seasons {
		names = append(names, fmt.Sprintf("%q", season(n)))
	}
	return fmt.Sprintf(`{"%s": {"periods": [%s]}, %s`, seasonBoard, strings.Join(names, ", "), strings.TrimPrefix(boards, "{"))
}

// finish waits until all seasons are final and in the archive, with the same content as in Redis. Nothing
// is wrong at this time, but a process that has looked for due windows looks again only a minute later, so
// all consumers are replaced.
func (w *world) finish(t testing.TB, m *ModeReport) {
	t.Helper()
	for n := range seasons { // the last season may not have ended yet
		time.Sleep(time.Until(w.seasonEnd(t, n).Add(afterwards + time.Second)))
	}
	w.anew(t)
	harness.Eventually(t, finalWithin, func() string {
		windows := w.seasons(t)
		m.Final = len(windows)
		for _, name := range windows {
			if !w.place.Final(t, name) {
				return name + " isn't final"
			}
			if wrong := w.archived(t.Context(), name); wrong != "" {
				return wrong
			}
		}
		return ""
	})
	w.place.TakeSeals(t)
	w.comeLate(t)
}

// anew replaces all consumers.
func (w *world) anew(t testing.TB) {
	t.Helper()
	for _, s := range w.takeAll(rand.New(rand.NewPCG(0, 0))) {
		s.consumer.Terminate(t)
		w.giveBack(s)
	}
}

// meanwhile replaces all replicas while events arrive: an ended season must become final nevertheless. The last season has usually not ended, and must not become final.
func (w *world) meanwhile(t testing.TB, m *ModeReport) {
	t.Helper()
	time.Sleep(time.Until(w.seasonEnd(t, 0).Add(afterwards + time.Second)))
	w.anew(t)
	for begun := time.Now(); m.Meanwhile == 0; time.Sleep(200 * time.Millisecond) {
		if w.lock(t.Context()) { // nothing is sealed during a rebuild
			begun = time.Now()
		}
		if time.Since(begun) > meanwhileWithin {
			t.Fatalf("events come, and no season is final %v after other consumers took over", meanwhileWithin)
		}
		m.Meanwhile = w.final(t)
	}
}

// comeLate publishes events that every season would have accepted: for final seasons they are late.
func (w *world) comeLate(t testing.TB) {
	t.Helper()
	var all []*kgo.Record
	for i := range 500 {
		at := time.Now().Add(-time.Since(w.began) - time.Minute) // before the first season ended
		r := harness.Record(i%partitions, asJSON(map[string]any{
			"user_id": fmt.Sprintf("m%d", i), "points": 3, "board": []string{seasonBoard, "eu"}, "occurred_at": at.UnixMilli(),
		}))
		r.Timestamp = at
		all = append(all, r)
	}
	w.place.Produce(t, all...)
}

// seasons returns the windows of seasons on all boards, by their names in the listing.
func (w *world) seasons(t testing.TB) []string {
	t.Helper()
	return slices.DeleteFunc(slices.Sorted(maps.Keys(w.place.Hash(t, "windows"))), func(name string) bool {
		return !strings.Contains(name, ":season-")
	})
}

// final returns the number of final windows of seasons.
func (w *world) final(t testing.TB) int {
	t.Helper()
	return len(slices.DeleteFunc(w.seasons(t), func(name string) bool { return !w.place.Final(t, name) }))
}

// archived describes what is wrong with the newest copy of a final window. It does not compare members who
// were ever banned: whether a copy contains them depends on when it was taken.
func (w *world) archived(ctx context.Context, name string) (wrong string) {
	db, err := w.openArchive()
	if err != nil {
		return err.Error()
	}
	defer db.Close() //nolint:errcheck // it was read
	words := strings.SplitN(name, ":", 3)
	rows, err := db.QueryContext(ctx, "SELECT member, rank, score, revision FROM results WHERE board = $1 AND period = $2 AND name = $3 ORDER BY rank", words[0], words[1], words[2])
	if err != nil {
		return fmt.Sprintf("read %s of the archive: %v", name, err)
	}
	defer rows.Close() //nolint:errcheck // Err is looked at
	copied, revision, last := map[string]uint64{}, 0, int64(0)
	for rows.Next() {
		var member string
		var rank int64
		var score float64
		if err := rows.Scan(&member, &rank, &score, &revision); err != nil {
			return fmt.Sprintf("read %s of the archive: %v", name, err)
		}
		if last++; rank != last {
			return fmt.Sprintf("%s of the archive has the rank %d at row %d", name, rank, last)
		}
		copied[member] = math.Float64bits(score)
	}
	if err := rows.Err(); err != nil {
		return fmt.Sprintf("read %s of the archive: %v", name, err)
	}
	if listing := w.place.Hash(w.t, "windows")[name]; !strings.Contains(listing, fmt.Sprintf(`"final":%d,`, revision)) {
		return fmt.Sprintf("the archive has revision %d of %s, which is listed as %q", revision, name, listing)
	}
	held := w.place.Board(w.t, name)
	for who := range w.orders {
		_, member, _ := strings.Cut(who, ":")
		delete(copied, member)
		delete(held, member)
	}
	if !maps.Equal(held, copied) {
		return fmt.Sprintf("%s has %d members in Redis, and %d in the archive, or other scores", name, len(held), len(copied))
	}
	return ""
}
