// Package e2e runs the built consumer as processes on a Kafka and a Redis, and holds
// what came of it against an oracle that knows nothing but the published records.
package e2e

import (
	"testing"
	"time"

	"github.com/standings/standings/test/harness"
)

func TestMain(m *testing.M) { harness.MainWaiting(m) }

// within is how long anything of a small run may take on a machine that is busy.
const within = 90 * time.Second
