// Package security runs the built consumer against servers that authenticate their clients: every documented
// way works, and every mistake is reported in one line.
package security

import (
	"strings"
	"testing"
	"time"

	"github.com/standings/standings/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

const within = harness.Within

// refuses checks that a command which cannot work ends soon with exit code 1, and that one line contains all of
// these texts.
func refuses(t *testing.T, place *harness.Place, settings map[string]string, says []string, args ...string) {
	t.Helper()
	began := time.Now()
	code, out := place.Says(t, settings, args...)
	t.Logf("%s, after %v: %s", args[0], time.Since(began).Round(time.Millisecond), lastLine(out))
	if code != 1 {
		t.Errorf("%v ends with code %d:\n%s", args, code, out)
	}
	for _, line := range harness.Reasons(out) {
		if containsAll(line, says) {
			return
		}
	}
	t.Errorf("no line of %v says %q:\n%s", args, says, out)
}

func containsAll(text string, all []string) bool {
	for _, s := range all {
		if !strings.Contains(text, s) {
			return false
		}
	}
	return true
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
