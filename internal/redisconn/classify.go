package redisconn

import (
	"errors"
	"io"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/ledger"
)

// Classify returns the verdict on an error of Redis. An error that is not a reply of the server (a timeout,
// a closed connection, a failed name lookup) is transient: the outcome of the call is unknown.
func Classify(err error) ledger.Verdict {
	if _, ok := errors.AsType[*ServerMismatchError](err); ok {
		return ledger.Halt
	}
	if _, ok := errors.AsType[*EvictionError](err); ok {
		return ledger.Halt
	}
	reply, ok := errors.AsType[redis.Error](err)
	if !ok {
		return ledger.Retry
	}
	text := cause(reply.Error())
	for _, v := range verdicts {
		if startsWith(text, v.code) {
			return v.verdict
		}
	}
	return ledger.Halt
}

// verdicts is the table. Replies that are not in it are unexpected: halt, and report them.
var verdicts = []struct {
	code    string
	verdict ledger.Verdict
}{
	{"LOADING", ledger.Retry},               // it is loading its dump
	{"READONLY", ledger.Retry},              // a replica: a failover is in progress
	{"OOM", ledger.Retry},                   // noeviction, and maxmemory is reached
	{"NOSCRIPT", ledger.Retry},              // the scripts were flushed between two calls
	{"MOVED", ledger.Retry},                 // a slot has moved: the client follows
	{"ASK", ledger.Retry},                   // a slot is moving
	{"TRYAGAIN", ledger.Retry},              // some of the keys have moved
	{"CLUSTERDOWN", ledger.Retry},           // no majority
	{"MASTERDOWN", ledger.Retry},            // a replica without its master
	{"BUSY", ledger.Retry},                  // a script runs for long
	{"MISCONF", ledger.Retry},               // it cannot persist, and refuses writes
	{"NOREPLICAS", ledger.Retry},            // fewer replicas than writes require
	{"UNBLOCKED", ledger.Retry},             // a failover interrupted the call
	{"max number of clients", ledger.Retry}, // too many clients
	{"Script killed by user", ledger.Retry}, // SCRIPT KILL ends only scripts that have not written
	{"NOAUTH", ledger.Halt},                 // no password was sent
	{"WRONGPASS", ledger.Halt},              // the password is wrong
	{"NOPERM", ledger.Halt},                 // a right is missing
	{notInScript, ledger.Halt},              // the same inside a script, up to Redis 7.0
	{deniedInScript, ledger.Halt},           // the same since Redis 7.2, and in Valkey
	{"WRONGTYPE", ledger.Halt},              // a key has another type than the scripts write
}

const (
	notInScript    = "The user executing the script"
	deniedInScript = "ACL failure in script"
)

// cause returns the text of a reply without the generic code ERR, and without the text that Redis 6.2 puts
// around an error inside a script:
//
//	ERR Error running script (call to f_…): @user_script:36: @user_script: 36: -OOM command …
//	ERR Error running script (call to f_…): @user_script:36: WRONGTYPE Operation …
func cause(text string) string {
	if inside := strings.LastIndex(text, "@user_script:"); inside >= 0 && strings.HasPrefix(text, "ERR Error running script") {
		_, line, _ := strings.Cut(text[inside:], ":")
		_, text, _ = strings.Cut(line, ": ")
		return strings.TrimPrefix(text, "-")
	}
	return strings.TrimPrefix(text, "ERR ")
}

// startsWith reports whether a cause begins with a code: "BUSY Redis …", but not "BUSYKEY …".
func startsWith(text, code string) bool {
	rest, ok := strings.CutPrefix(text, code)
	return ok && (rest == "" || rest[0] == ' ' || rest[0] == ':')
}

// IsFull reports whether Redis refused a call because of maxmemory.
func IsFull(err error) bool {
	reply, ok := errors.AsType[redis.Error](err)
	return ok && startsWith(cause(reply.Error()), "OOM")
}

// unavailable reports whether the server replied that a command is not available: it is renamed, not
// offered by the host, or not permitted to the user. Missing or wrong credentials are not included, nor is
// a database that does not exist.
func unavailable(err error) bool {
	reply, ok := errors.AsType[redis.Error](err)
	return ok && Classify(err) == ledger.Halt && (&Settings{}).refusal(cause(reply.Error())) == ""
}

// Unreachable reports whether an error means that the server did not reply at all.
func Unreachable(err error) bool {
	_, answered := errors.AsType[redis.Error](err)
	_, network := errors.AsType[net.Error](err)
	_, noMaster := errors.AsType[*noMasterError](err)
	return !answered && (network || noMaster || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF))
}
