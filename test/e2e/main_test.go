// Package e2e runs the built consumer as processes on a Kafka and a Redis, and holds
// what came of it against an oracle that knows nothing but the published records.
package e2e

import (
	"testing"
	"time"

	"github.com/standings/standings/test/harness"
)

func TestMain(m *testing.M) { harness.MainWaiting(m) }

// within is how long anything may take on a machine that is busy, and ledgers may stand still:
// it is for what hangs, and no promise of how fast anything is.
const within = 3 * time.Minute
