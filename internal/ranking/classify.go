package ranking

import (
	"errors"
	"fmt"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/redisconn"
)

// Classify returns how to handle an error of a store. It classifies the store's own errors by type, and
// Redis's errors with redisconn.Classify. An error without an answer from Redis may be temporary: the
// outcome is unknown, and the ledger makes a repeated call harmless.
func Classify(err error) ledger.Verdict {
	if _, ok := errors.AsType[*SchemaError](err); ok {
		return ledger.Halt
	}
	if errors.Is(err, errHeldUp) {
		return ledger.Retry
	}
	if _, ok := errors.AsType[*SeveralError](err); ok {
		return ledger.Halt
	}
	if _, ok := errors.AsType[*fault](err); ok {
		return ledger.Halt
	}
	return redisconn.Classify(err)
}

// fault is a bug in this program or in a server that answers in Redis's place. A repeated call can't help.
type fault struct{ what string }

func (f *fault) Error() string { return f.what }

// Faultf returns an error that a repeated call can't fix: a bug in this program or in a server that answers
// in Redis's place.
func Faultf(format string, args ...any) error { return &fault{fmt.Sprintf(format, args...)} }
