package main

import (
	"strings"
	"testing"
	"time"

	"github.com/standings/standings/test/clitest"
)

// offers returns the completions for the last word.
func offers(t *testing.T, environ []string, line string) string {
	t.Helper()
	code, stdout, stderr := execute(t, environ, append([]string{"__complete"}, strings.Split(line, " ")...)...)
	words, directive, _ := strings.Cut(stdout, ":")
	if code != 0 || strings.Contains(stderr, "consumer: ") || directive == "" {
		t.Errorf("%q: code %d, %q, %s", line, code, stdout, stderr)
	}
	return strings.Join(strings.Fields(words), " ")
}

func TestAShellIsOfferedBoardsAndPeriods(t *testing.T) {
	w := clitest.StandingsOf(t, 0)
	w.Add(t, "global", clitest.Member("Kalobi", 5, ""))
	w.AddTo(t, "2100-W11", "eu", clitest.Member("Kalobi", 5, ""))
	if err := w.Reader.Client.HSet(t.Context(), w.Store.Keys().Windows(), "a\x1b;$(rm):weekly:2100-W10", `{"end":4108665600000,"expires":7258118400000,"start":4108060800000}`).Err(); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); offers(t, w.Environ, "top ") == "" && time.Since(begun) < time.Minute; { // Redis may be slow
	}
	for line, want := range map[string]string{
		"top ": "eu global", "top eu ": "weekly monthly yearly", "top eu weekly ": "", "top --json ": "eu global",
		"rank ": "eu global", "rank eu weekly ": "", "export eu ": "weekly monthly yearly", "boards ": "eu global", "boards eu ": "",
		"drop --board ": "eu global",
		"diff --board ": "eu global", "diff --period ": "weekly monthly yearly", "diff --board eu --period ": "weekly monthly yearly",
		"drop --prefix nobody --board ": "", "top --config /nowhere ": "", "diff --config /nowhere --period ": "",
	} {
		if got := offers(t, w.Environ, line); got != want {
			t.Errorf("%q is offered %q, want %q", line, got, want)
		}
	}
	environ := append([]string{"STANDINGS_CONFIG=" + clitest.Config(t, "boards:\n  cup: {periods: [yearly]}\n  \"*\": {}\n")}, w.Environ...)
	for line, want := range map[string]string{"top ": "cup eu global", "top cup ": "yearly", "top eu ": "weekly monthly yearly"} {
		if got := offers(t, environ, line); got != want {
			t.Errorf("%q is offered %q, want %q", line, got, want)
		}
	}
}

func TestEveryShellCanComplete(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if code, stdout, stderr := execute(t, nil, "completion", shell); code != 0 || stderr != "" || !strings.Contains(stdout, "__complete") {
			t.Errorf("completion %s: code %d, %.200s%s", shell, code, stdout, stderr)
		}
	}
}

func TestWithoutRedisTheBoardsOfTheConfigurationAreOffered(t *testing.T) {
	for address, what := range map[string]string{clitest.ClosedPort(t): "closed", clitest.SilentPort(t): "silent"} {
		environ := []string{"STANDINGS_REDIS_ADDRESSES=" + address, "STANDINGS_REDIS_TIMEOUT=1m", "STANDINGS_BOARDS=eu"}
		begun := time.Now()
		if got := offers(t, environ, "top "); got != "eu" {
			t.Errorf("%s: %q", what, got)
		}
		if took := time.Since(begun); took > 20*time.Second { // far less than the timeout of a minute, also on a busy machine
			t.Errorf("%s: it took %v", what, took)
		}
	}
}
