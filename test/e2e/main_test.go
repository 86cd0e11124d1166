// Package e2e runs the built consumer as processes on a Kafka and a Redis, and holds
// what came of it against an oracle that knows nothing but the published records.
package e2e

import (
	"testing"

	"github.com/standings/standings/test/harness"
)

func TestMain(m *testing.M) { harness.MainWaiting(m) }

const within = harness.Within

// says runs a command with settings, and returns its exit code and all that it said.
func says(t *testing.T, place *harness.Place, settings map[string]string, args ...string) (code int, said string) {
	t.Helper()
	got := place.Run(t, settings, args...)
	return got.Code, got.Stdout + got.Stderr
}
