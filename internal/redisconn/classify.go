package redisconn

import (
	"errors"
	"io"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/ledger"
)

// Classify says what an error of Redis asks for. Whatever isn't an answer of the
// server at all (a timeout, a closed connection, a name that doesn't resolve)
// may pass: the outcome is unknown.
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

// The table. What isn't in it is an answer that nobody foresaw: halt, and show it.
var verdicts = []struct {
	code    string
	verdict ledger.Verdict
}{
	{"LOADING", ledger.Retry},               // reading its dump
	{"READONLY", ledger.Retry},              // a replica: a failover is under way
	{"OOM", ledger.Retry},                   // noeviction, and full
	{"NOSCRIPT", ledger.Retry},              // scripts flushed between two calls
	{"MOVED", ledger.Retry},                 // a slot has moved: the client learns it
	{"ASK", ledger.Retry},                   // a slot is moving
	{"TRYAGAIN", ledger.Retry},              // some keys have moved, some not yet
	{"CLUSTERDOWN", ledger.Retry},           // no majority
	{"MASTERDOWN", ledger.Retry},            // a replica without its master
	{"BUSY", ledger.Retry},                  // a script runs for long
	{"MISCONF", ledger.Retry},               // can't persist, and refuses writes
	{"NOREPLICAS", ledger.Retry},            // fewer replicas than writes need
	{"UNBLOCKED", ledger.Retry},             // a failover cut the call
	{"max number of clients", ledger.Retry}, // full
	{"Script killed by user", ledger.Retry}, // SCRIPT KILL ends only what has written nothing
	{"NOAUTH", ledger.Halt},                 // no password given
	{"WRONGPASS", ledger.Halt},              // a wrong one
	{"NOPERM", ledger.Halt},                 // a right is missing
	{notInScript, ledger.Halt},              // the same inside a script, up to Redis 7.0
	{deniedInScript, ledger.Halt},           // and since Redis 7.2 and Valkey
	{"WRONGTYPE", ledger.Halt},              // a key of ours holds something else
}

const (
	notInScript    = "The user executing the script"
	deniedInScript = "ACL failure in script"
)

// cause is what a reply says, without the code that says nothing (ERR) and
// without what Redis 6.2 puts around an error inside of a script:
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

// startsWith reports whether a cause begins with a code: "BUSY Redis …", not "BUSYKEY …".
func startsWith(text, code string) bool {
	rest, ok := strings.CutPrefix(text, code)
	return ok && (rest == "" || rest[0] == ' ' || rest[0] == ':')
}

// IsFull reports whether Redis refused a call for its maxmemory.
func IsFull(err error) bool {
	reply, ok := errors.AsType[redis.Error](err)
	return ok && startsWith(cause(reply.Error()), "OOM")
}

// unavailable reports whether a server has answered that a command isn't there for
// us: renamed away, not offered by the host, or not this user's. Credentials that are
// missing or wrong are something else, and so is a database that there isn't.
func unavailable(err error) bool {
	reply, ok := errors.AsType[redis.Error](err)
	return ok && Classify(err) == ledger.Halt && (&Settings{}).refusal(cause(reply.Error())) == ""
}

// Unreachable reports whether an error says that there was no answer at all.
func Unreachable(err error) bool {
	_, answered := errors.AsType[redis.Error](err)
	_, network := errors.AsType[net.Error](err)
	_, noMaster := errors.AsType[*noMasterError](err)
	return !answered && (network || noMaster || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF))
}
