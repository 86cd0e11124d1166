package ranking

import (
	"errors"
	"fmt"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/redisconn"
)

// Classify says what an error of a store asks for: its own errors by name, Redis's as
// redisconn.Classify does. What had no answer may pass: the outcome is unknown, and the
// ledger makes trying again harmless.
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

// fault is an error of this program, or of whatever answers in Redis's place:
// trying again can't help.
type fault struct{ what string }

func (f *fault) Error() string { return f.what }

// Faultf is an error that trying again can't help: a fault of this program, or of whatever
// answers in Redis's place.
func Faultf(format string, args ...any) error { return &fault{fmt.Sprintf(format, args...)} }
