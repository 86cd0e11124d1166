package redisconn

// The name of a missing right, taken from a server's reply. Since Redis 7.2 replies name the command;
// before, replies from inside a script name only the line of the script.

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// RightsError reports a right that the Redis user lacks.
type RightsError struct {
	Command string // upper case, with its subcommand: "CONFIG|GET"; empty if the right is to keys
	Prefix  string // of the keys
	Err     error
}

func (e *RightsError) Error() string {
	if e.Command == "" {
		return fmt.Sprintf("Redis doesn't let this user use the keys of redis.prefix: grant them (ACL SETUSER … ~%s:*): %v", e.Prefix, e.Err)
	}
	return fmt.Sprintf("Redis doesn't let this user run %s: grant it (ACL SETUSER … +%s): %v", e.Command, strings.ToLower(e.Command), e.Err)
}
func (e *RightsError) Unwrap() error { return e.Err }

// IsMissingRight reports whether an error means that the user lacks a right.
func IsMissingRight(err error) bool {
	reply, ok := errors.AsType[redis.Error](err)
	if !ok {
		return false
	}
	text := cause(reply.Error())
	return startsWith(text, "NOPERM") || startsWith(text, notInScript) || startsWith(text, deniedInScript)
}

var (
	quotedCommand = regexp.MustCompile(`'([a-zA-Z|-]+)'`)
	aboutKeys     = regexp.MustCompile(`\bkeys?\b`)
	lineOfScript  = regexp.MustCompile(`@user_script:\s?(\d+)`)
	calledInLine  = regexp.MustCompile(`call\('([A-Z]+)'`)
)

// NameRight turns an error for a missing right into a *RightsError, and returns other errors unchanged.
// script is the source of the script that was called, if any.
func NameRight(err error, script, prefix string) error {
	if !IsMissingRight(err) {
		return err
	}
	if _, named := errors.AsType[*RightsError](err); named {
		return err
	}
	reply, _ := errors.AsType[redis.Error](err)
	text := reply.Error()
	e := &RightsError{Prefix: prefix, Err: err}
	if command := quotedCommand.FindStringSubmatch(text); command != nil {
		e.Command = strings.ToUpper(command[1])
		return e
	}
	if aboutKeys.MatchString(text) {
		return e
	}
	e.Command = "a command of its scripts"
	if line := lineOfScript.FindStringSubmatch(text); line != nil {
		n, _ := strconv.Atoi(line[1])
		lines := strings.Split(script, "\n")
		if n >= 1 && n <= len(lines) {
			if called := calledInLine.FindStringSubmatch(lines[n-1]); called != nil {
				e.Command = called[1]
			}
		}
	}
	return e
}
