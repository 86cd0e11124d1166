package health

import (
	"errors"
	"fmt"

	"github.com/standings/standings/internal/ledger"
)

// Waiting is an error that a partition waits out, with the reason for it: a wait whose
// cause is neither just Kafka nor just Redis. It goes to reading, writing or waiting,
// wrapped or not, and from there into the partition's Line.
type Waiting struct { //nolint:errname // what a partition is in, more than what went wrong
	Reason string // one of the constants below: a label
	Err    error  // what was found, and where
	Remedy string // what to do if it lasts
}

// Reasons of waiting.
const (
	WaitsMemory      = "memory"       // for its turn at fold_memory
	WaitsDeadLetters = "dead_letters" // for its dead-letter topic
	WaitsRedisFull   = "redis_full"   // Redis is at its maxmemory
	WaitsThrottled   = "throttled"    // a quota of Kafka's
	WaitsRebuild     = "rebuild"      // a rebuild holds the boards
	WaitsReshard     = "reshard"      // a reshard copies them
	WaitsKafka       = "kafka"        // Kafka doesn't answer, or not with what was asked for
	WaitsRedis       = "redis"        // Redis doesn't
	WaitsDuplicates  = "duplicates"   // records before its position are read, for duplicates
	WaitsTransaction = "transaction"  // it runs, and an open transaction holds records back
)

// WaitReasons lists all of them, so that every gauge can be at zero before the first
// wait.
func WaitReasons() []string {
	return []string{WaitsMemory, WaitsDeadLetters, WaitsRedisFull, WaitsThrottled, WaitsRebuild, WaitsReshard, WaitsKafka, WaitsRedis, WaitsDuplicates}
}

func (w *Waiting) Error() string { return w.Err.Error() }

func (w *Waiting) Unwrap() error { return w.Err }

// ClassifyWait is the reason for waiting out an error, and what to do if it lasts.
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

// roomRemedy is what to do about a Redis that is full.
func roomRemedy(full *ledger.FullError) string {
	of := "it is reached"
	if full.Max > 0 {
		of = fmt.Sprintf("%d of %d bytes are used", full.Used, full.Max)
	}
	return "raise Redis's maxmemory (" + of + "), by CONFIG SET maxmemory for instance, or remove what isn't needed (consumer drop); " +
		"nothing is lost or counted meanwhile, and it goes on by itself once there is room"
}
