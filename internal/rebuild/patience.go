package rebuild

// How long a rebuild waits.

import (
	"cmp"
	"time"

	"github.com/standings/standings/internal/retry"
)

// patience is how long a rebuild waits where a test has less of it; zero: as long as the methods of
// Job return.
type patience struct {
	outrun     int
	standstill time.Duration
	leaveTime  time.Duration
}

// outrun is how many rounds that don't get short are waited for in silence.
func (j *Job) outrun() int { return cmp.Or(j.patience.outrun, 20) }

// standstill is how long a rebuild waits for a live ledger at a position that it can't reach. The
// consumers go on from there, once they run.
func (j *Job) standstill() retry.Policy {
	return retry.Policy{First: 100 * time.Millisecond, Longest: 3 * time.Second, Patience: cmp.Or(j.patience.standstill, 30*time.Second)}
}

// leaveTime is how long a rebuild whose context has ended asks whether it has swapped, and tries to
// remove what it leaves.
func (j *Job) leaveTime() time.Duration { return cmp.Or(j.patience.leaveTime, 15*time.Second) }
