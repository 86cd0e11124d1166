package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/standings/standings/test/clitest"
	"github.com/standings/standings/test/harness"
)

// The collected JSON log also contains the reason why a consumer ended.
func TestWhyAConsumerEndsIsLoggedAsTheLogIs(t *testing.T) {
	for name, c := range map[string]struct {
		environ []string
		code    int
		want    []string
	}{
		"a wrong configuration": {[]string{"STANDINGS_START=soon", "STANDINGS_REDIS_PREFIXX=lb"}, 2, []string{"start", "STANDINGS_REDIS_PREFIXX"}},
		"a port that is taken":  {[]string{"STANDINGS_LISTEN=" + clitest.SilentPort(t)}, 1, []string{"listen"}},
	} {
		code, stdout, stderr := execute(t, c.environ, "run")
		if code != c.code || stdout != "" {
			t.Errorf("%s: code %d: %s", name, code, stdout)
		}
		for line := range strings.Lines(stderr) {
			if !json.Valid([]byte(line)) {
				t.Errorf("%s: a line isn't JSON: %s", name, line)
			}
		}
		reasons := harness.Reasons(stderr)
		if len(reasons) != len(c.want) {
			t.Errorf("%s: %q", name, reasons)
		}
		for _, want := range c.want {
			if !slices.ContainsFunc(reasons, func(reason string) bool { return strings.Contains(reason, want) }) {
				t.Errorf("%s: no reason names %s: %q", name, want, reasons)
			}
		}
	}
}
