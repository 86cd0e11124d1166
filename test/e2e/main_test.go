// Package e2e runs the built consumer as processes with a Kafka and a Redis, and compares the results with an
// oracle that knows only the published records.
package e2e

import (
	"testing"

	"github.com/standings/standings/test/harness"
)

func TestMain(m *testing.M) { harness.MainWaiting(m) }

const within = harness.Within
