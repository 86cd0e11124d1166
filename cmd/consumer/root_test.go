package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/standings/standings/test/clitest"
)

// execute runs the program as main does, on nothing but its arguments.
func execute(t *testing.T, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = consumer(t.Context(), args, environ, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func TestAWrongCommandLineExitsWithTwoAndOneLine(t *testing.T) {
	for want, args := range map[string][]string{
		`unknown command "confg"; did you mean "config"?`: {"confg"},
		`unknown command "zzz"; use archive, ban, `:       {"zzz"},
		"unknown flag: --loud":                            {"config", "--loud"},
		"takes 0 arguments, not 1":                        {"config", "now"},
	} {
		code, stdout, stderr := execute(t, nil, args...)
		if code != 2 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%v: code %d, %s%s", args, code, stdout, stderr)
		}
	}
	if code, stdout, _ := execute(t, nil); code != 0 || !strings.Contains(stdout, "\n\nModerate:\n  ban ") {
		t.Errorf("no arguments: code %d, %s", code, stdout)
	}
}

func TestCommandsCompleteBoardsAndPeriods(t *testing.T) {
	w := clitest.StandingsOf(t, 0)
	w.Add(t, "global", clitest.Member("Kalobi", 5, ""))
	for line, want := range map[string]string{
		"top ": "global", "top global ": "weekly monthly yearly",
		"rank ": "global", "rank global weekly ": "", "export global ": "weekly monthly yearly",
		"boards ": "global", "boards global ": "", "rebuild --board ": "global", "ban --board ": "global", "unban --board ": "global",
		"drop --board ": "global", "drop --prefix nobody --board ": "", "diff --board ": "global", "diff --period ": "weekly monthly yearly",
	} {
		_, stdout, stderr := execute(t, w.Environ, append([]string{"__complete"}, strings.Split(line, " ")...)...)
		words, _, ok := strings.Cut(stdout, ":")
		if got := strings.Join(strings.Fields(words), " "); got != want || !ok {
			t.Errorf("%q is offered %q, want %q: %s", line, got, want, stderr)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if code, stdout, stderr := execute(t, nil, "completion", shell); code != 0 || stderr != "" || !strings.Contains(stdout, "__complete") {
			t.Errorf("completion %s: code %d, %.200s%s", shell, code, stdout, stderr)
		}
	}
}
