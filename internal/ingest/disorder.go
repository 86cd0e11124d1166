package ingest

import (
	"math"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/retry"
)

// disorder is how far a record's time may lie before that of an earlier one, by the
// operator's word, and what is done where a log shows otherwise. It is the reader's.
type disorder struct {
	allowed *time.Duration // nil without a word
	log     *zap.Logger
	stats   *Stats
	logged  retry.LogLimit
}

// ms is the operator's word in ms, without one more than any two times are apart.
func (d *disorder) ms() int64 {
	if d.allowed == nil {
		return math.MaxInt64
	}
	return d.allowed.Milliseconds()
}

// disorderLogged is how often a log that breaks the operator's word is logged.
const disorderLogged = time.Minute

// broken counts a record that breaks the operator's word, and logs it.
func (d *disorder) broken(offset, by int64) {
	d.stats.Disordered.Add(1)
	if !d.logged.Due(disorderLogged) {
		return
	}
	d.log.Warn("a record's time lies further before that of an earlier one than disorder says: windows may be taken for complete that aren't",
		zap.Int64("offset", offset), zap.Duration("behind", time.Duration(min(by, math.MaxInt64/int64(time.Millisecond)))*time.Millisecond),
		zap.Duration("disorder", *d.allowed))
}

// denied logs a trail that a record has shown to be another log's.
func (d *disorder) denied(offset int64) {
	d.log.Warn("a record is later than what the group's offsets say of its log, which was truncated or made again: what they say is dropped, and windows count as incomplete up to now",
		zap.Int64("offset", offset))
}
