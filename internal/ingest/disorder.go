package ingest

import (
	"math"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/retry"
)

// disorder checks how far a record's time lies before that of an earlier record, against the operator's limit.
// Only the reader's goroutine uses it.
type disorder struct {
	allowed *time.Duration // nil: no limit is configured
	log     *zap.Logger
	stats   *Stats
	logged  retry.LogLimit
}

// ms returns the operator's limit in ms; without a limit, more than any two times can differ.
func (d *disorder) ms() int64 {
	if d.allowed == nil {
		return math.MaxInt64
	}
	return d.allowed.Milliseconds()
}

// disorderLogged is the minimum interval between two log lines about records that exceed the limit.
const disorderLogged = time.Minute

// broken counts and logs a record that exceeds the operator's limit.
func (d *disorder) broken(offset, by int64) {
	d.stats.Disordered.Add(1)
	if !d.logged.Due(disorderLogged) {
		return
	}
	d.log.Warn("a record's time lies further before that of an earlier one than disorder says: windows may be taken for complete that aren't",
		zap.Int64("offset", offset), zap.Duration("behind", time.Duration(min(by, math.MaxInt64/int64(time.Millisecond)))*time.Millisecond),
		zap.Duration("disorder", *d.allowed))
}

// denied logs that a record contradicts the trail, which therefore belongs to another log.
func (d *disorder) denied(offset int64) {
	d.log.Warn("a record is later than what the group's offsets say of its log, which was truncated or made again: what they say is dropped, and windows count as incomplete up to now",
		zap.Int64("offset", offset))
}
