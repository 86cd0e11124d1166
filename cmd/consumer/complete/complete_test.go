package complete

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/test/clitest"
	"github.com/standings/standings/test/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, testenv.LeakOptions()...) }

// commands are one that has all that can be completed, and one with BOARD alone.
func commands(p *cli.Program) *cobra.Command {
	do := func(*cobra.Command, []string) error { return nil }
	c := &cobra.Command{Use: "see BOARD PERIOD", ValidArgsFunction: BoardAndPeriod(p), RunE: do}
	for _, name := range []string{"board", "period", "prefix"} {
		c.Flags().String(name, "", "")
	}
	Flags(c, p)
	return c
}

// offers is what a shell is offered for the last word.
func offers(t *testing.T, environ []string, line string) string {
	t.Helper()
	code, stdout, stderr := clitest.Execute(t, commands, environ, append([]string{"__complete"}, strings.Split(line, " ")...)...)
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
	for begun := time.Now(); offers(t, w.Environ, "see ") == "" && time.Since(begun) < time.Minute; { // Redis may be slow
	}
	for line, want := range map[string]string{
		"see ":                             "eu global",
		"see eu ":                          "weekly monthly yearly",
		"see eu weekly ":                   "",
		"see --board ":                     "eu global",
		"see --period ":                    "weekly monthly yearly",
		"see --prefix nobody --board ":     "",
		"see --prefix no/prefix --board ":  "",
		"see --config /nowhere ":           "",
		"see --config /nowhere eu ":        "",
		"see --config /nowhere --period ":  "",
		"see --board eu --period monthly ": "eu global",
	} {
		if got := offers(t, w.Environ, line); got != want {
			t.Errorf("%q is offered %q, want %q", line, got, want)
		}
	}
	environ := append([]string{"STANDINGS_CONFIG=" + clitest.Config(t, "boards:\n  cup: {periods: [yearly]}\n  \"*\": {}\n")}, w.Environ...)
	for line, want := range map[string]string{"see ": "cup eu global", "see cup ": "yearly", "see eu ": "weekly monthly yearly"} {
		if got := offers(t, environ, line); got != want {
			t.Errorf("%q is offered %q, want %q", line, got, want)
		}
	}
}

func TestWithoutRedisTheBoardsOfTheConfigurationAreOffered(t *testing.T) {
	for address, what := range map[string]string{clitest.ClosedPort(t): "closed", clitest.SilentPort(t): "silent"} {
		environ := []string{"STANDINGS_REDIS_ADDRESSES=" + address, "STANDINGS_REDIS_TIMEOUT=1m", "STANDINGS_BOARDS=eu"}
		begun := time.Now()
		if got := offers(t, environ, "see "); got != "eu" {
			t.Errorf("%s: %q", what, got)
		}
		if took := time.Since(begun); took > 20*time.Second { // of a minute's timeout, on a machine that is busy
			t.Errorf("%s: it took %v", what, took)
		}
	}
}
