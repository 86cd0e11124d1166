// Package e2e runs the built consumer as processes with a Kafka and a Redis, and compares the results with an
// oracle that knows only the published records.
package e2e

import (
	"testing"

	"github.com/standings/standings/test/harness"
)

func TestMain(m *testing.M) { harness.MainWaiting(m) }

const within = harness.Within

// says runs a command with settings, and returns its exit code and its combined output.
func says(t *testing.T, place *harness.Place, settings map[string]string, args ...string) (code int, said string) {
	t.Helper()
	got := place.Run(t, settings, args...)
	return got.Code, got.Stdout + got.Stderr
}
