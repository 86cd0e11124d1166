package ranking

import (
	"errors"
	"io"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/ledger"
)

// Meaning says what an error of Redis asks for. Whatever isn't an answer of the
// server at all (a timeout, a closed connection, a name that doesn't resolve)
// may pass: the outcome is unknown, and the ledger makes trying again harmless.
func Meaning(err error) ledger.Verdict {
	if _, ok := errors.AsType[*SchemaError](err); ok {
		return ledger.Halt
	}
	reply, ok := errors.AsType[redis.Error](err)
	if !ok {
		return ledger.Retry
	}
	for _, m := range meanings {
		if says(reply.Error(), m.code) {
			return m.verdict
		}
	}
	return ledger.Halt
}

// says looks for a code where a server puts it: in front, or, in what Redis 6.2
// makes of an error inside a script, somewhere behind "@user_script".
func says(text, code string) bool {
	if strings.HasPrefix(text, code) {
		return true
	}
	_, inside, script := strings.Cut(text, "@user_script")
	return script && strings.Contains(inside, "-"+code+" ")
}

// The table. What isn't in it is an answer that nobody foresaw: halt, and show it.
var meanings = []struct {
	code    string
	verdict ledger.Verdict
}{
	{"LOADING", ledger.Retry},     // reading its dump
	{"READONLY", ledger.Retry},    // a replica: a failover is under way
	{"OOM", ledger.Retry},         // noeviction, and full
	{"NOSCRIPT", ledger.Retry},    // scripts flushed between two calls
	{"MOVED", ledger.Retry},       // a slot has moved: the client learns it
	{"ASK", ledger.Retry},         // a slot is moving
	{"TRYAGAIN", ledger.Retry},    // some keys have moved, some not yet
	{"CLUSTERDOWN", ledger.Retry}, // no majority
	{"MASTERDOWN", ledger.Retry},  // a replica without its master
	{"BUSY", ledger.Retry},        // a script runs for long
	{"MISCONF", ledger.Retry},     // can't persist, and refuses writes
	{"NOREPLICAS", ledger.Retry},  // fewer replicas than writes need
	{"UNBLOCKED", ledger.Retry},   // a failover cut the call
	{"ERR max number of clients", ledger.Retry},
	{"NOAUTH", ledger.Halt},                            // no password given
	{"WRONGPASS", ledger.Halt},                         // a wrong one
	{"NOPERM", ledger.Halt},                            // a right is missing
	{"ERR The user executing the script", ledger.Halt}, // the same, inside a script
	{"WRONGTYPE", ledger.Halt},                         // a key of ours holds something else
}

// missingRight reports whether an error says that this user may not do something.
func missingRight(err error) bool {
	reply, ok := errors.AsType[redis.Error](err)
	return ok && (says(reply.Error(), "NOPERM") || says(reply.Error(), "ERR The user executing the script"))
}

// AtStart is what an error means before anything was done: a process whose Redis
// will never let it work says so and ends, instead of waiting.
func AtStart(err error) ledger.Verdict {
	v := Meaning(err)
	if v == ledger.Halt {
		return ledger.Refuse
	}
	return v
}

// Unreachable reports whether an error says that there was no answer at all.
func Unreachable(err error) bool {
	_, answered := errors.AsType[redis.Error](err)
	_, network := errors.AsType[net.Error](err)
	return !answered && (network || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF))
}
