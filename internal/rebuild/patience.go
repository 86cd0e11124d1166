package rebuild

// The waiting times of a rebuild.

import (
	"cmp"
	"time"

	"github.com/standings/standings/internal/retry"
)

// patience overrides the waiting times in tests. Zero means the default, which the methods of Job return.
type patience struct {
	outrun     int
	standstill time.Duration
	leaveTime  time.Duration
}

// outrun is the number of long rounds after which a rebuild writes a note.
func (j *Job) outrun() int { return cmp.Or(j.patience.outrun, 20) }

// standstill is how long a rebuild waits for a live ledger at a position that the rebuild cannot reach.
// Running consumers continue from such a position.
func (j *Job) standstill() retry.Policy {
	return retry.Policy{First: 100 * time.Millisecond, Longest: 3 * time.Second, Patience: cmp.Or(j.patience.standstill, 30*time.Second)}
}

// leaveTime is how long a rebuild whose context has ended tries to learn whether it has swapped, and to
// remove its keys.
func (j *Job) leaveTime() time.Duration { return cmp.Or(j.patience.leaveTime, 15*time.Second) }
