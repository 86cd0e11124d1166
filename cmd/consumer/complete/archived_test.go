package complete

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/standings/standings/internal/archive/store"
	"github.com/standings/standings/test/clitest"
)

func TestAShellIsOfferedWhatTheArchiveAloneHas(t *testing.T) {
	patient(t)
	w := clitest.StandingsOf(t, 0)
	w.Add(t, "global", clitest.Member("Kalobi", 5, ""))
	path := filepath.Join(t.TempDir(), "archive.db")
	environ := append(w.Environ, "STANDINGS_SEAL=true", "STANDINGS_ARCHIVE_URL=sqlite:"+path)
	if got := offers(t, environ, "see "); got != "global" {
		t.Errorf("without one: %q", got)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("to look has made the archive")
	}
	s, err := store.Open(t.Context(), "sqlite:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if got := offers(t, environ, "see "); got != "global" {
		t.Errorf("of an empty one: %q", got)
	}
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	start := time.Date(2020, 11, 16, 0, 0, 0, 0, time.UTC)
	for _, board := range []string{"global", "old"} {
		copied := store.Window{Board: board, Period: "weekly", Name: "2020-W47", Start: start, End: start.AddDate(0, 0, 7), Revision: 1,
			AsOf: start.AddDate(0, 0, 8), SealedAt: start.AddDate(0, 0, 8), Zone: "UTC", Tick: time.Millisecond}
		writing, err := s.Begin(t.Context(), store.Fence{Token: 1, Owner: "tests"}, copied)
		if err == nil {
			err = writing.Finish(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for line, want := range map[string]string{
		"see ":                          "global old",
		"see global weekly --window ":   "2020-W47 2100-W10 current previous",
		"see old weekly --window ":      "2020-W47 current previous",
		"see old monthly --window ":     "current previous",
		"see --prefix nobody --board ":  "",
		"see --prefix nobody --window ": "",
	} {
		if got := offers(t, environ, line); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func TestAnArchiveThatIsAwayOrSilentIsNothingToSpeakOf(t *testing.T) {
	for address, what := range map[string]string{clitest.ClosedPort(t): "closed", clitest.SilentPort(t): "silent"} {
		environ := []string{"STANDINGS_REDIS_ADDRESSES=" + clitest.ClosedPort(t), "STANDINGS_BOARDS=eu", "STANDINGS_SEAL=true",
			"STANDINGS_ARCHIVE_URL=postgres://standings@" + address + "/games"}
		begun := time.Now()
		if got := offers(t, environ, "see eu weekly --window "); got != "current previous" {
			t.Errorf("%s: %q", what, got)
		}
		if took := time.Since(begun); took > 10*time.Second { // on a machine that is busy
			t.Errorf("%s: it took %v", what, took)
		}
	}
}
