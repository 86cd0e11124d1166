package main

import (
	"bytes"
	"strings"
	"testing"
)

// execute runs the program as main does, with only these arguments and variables.
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
