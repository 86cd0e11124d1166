package health

import (
	"errors"
	"fmt"

	"github.com/standings/standings/internal/ledger"
)

// Waiting is an error that a partition waits out, with a reason of its own, other than an unavailable Kafka or
// Redis. The worker passes it, possibly wrapped, to Status.Reading, Writing or Waiting, which show it in the
// partition's Line.
type Waiting struct { //nolint:errname // what a partition is in, more than what went wrong
	Reason string // one of the constants below, used as a label
	Err    error  // what was found, and where
	Remedy string // what to do if the wait lasts
}

// Reasons for waits.
const (
	WaitsMemory      = "memory"       // for its turn to use fold_memory
	WaitsDeadLetters = "dead_letters" // its dead-letter topic cannot be written
	WaitsRedisFull   = "redis_full"   // Redis is at its maxmemory
	WaitsThrottled   = "throttled"    // a Kafka quota
	WaitsRebuild     = "rebuild"      // a rebuild holds the boards
	WaitsReshard     = "reshard"      // a reshard copies the boards
	WaitsKafka       = "kafka"        // Kafka does not answer as requested
	WaitsRedis       = "redis"        // Redis does not answer as requested
	WaitsDuplicates  = "duplicates"   // reads records before its position, to find duplicates
	WaitsTransaction = "transaction"  // it runs, but an open transaction holds records back
)

// WaitReasons returns all reasons of the waiting state, so that every gauge can be 0 before the first wait.
func WaitReasons() []string {
	return []string{WaitsMemory, WaitsDeadLetters, WaitsRedisFull, WaitsThrottled, WaitsRebuild, WaitsReshard, WaitsKafka, WaitsRedis, WaitsDuplicates}
}

func (w *Waiting) Error() string { return w.Err.Error() }

func (w *Waiting) Unwrap() error { return w.Err }

// ClassifyWait returns the reason for waiting out an error, and the remedy if the wait lasts.
func ClassifyWait(err error) (reason, remedy string) {
	if w, ok := errors.AsType[*Waiting](err); ok {
		return w.Reason, w.Remedy
	}
	if full, ok := errors.AsType[*ledger.FullError](err); ok {
		return WaitsRedisFull, roomRemedy(full)
	}
	if IsStandings(err) {
		return WaitsRedis, "check that Redis runs and can be reached; it goes on by itself"
	}
	return WaitsKafka, "check that the brokers run and can be reached; it goes on by itself"
}

// roomRemedy returns the remedy for a full Redis.
func roomRemedy(full *ledger.FullError) string {
	of := "it is reached"
	if full.Max > 0 {
		of = fmt.Sprintf("%d of %d bytes are used", full.Used, full.Max)
	}
	return "raise Redis's maxmemory (" + of + "), by CONFIG SET maxmemory for instance, or remove what isn't needed (consumer drop); " +
		"nothing is lost or counted meanwhile, and it goes on by itself once there is room"
}
