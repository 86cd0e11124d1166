package ranking

// Locks with an expiry: those of rebuilds and reshards, and their holds.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/standings/standings/internal/ranking/lua"
)

// Lock is a lock's key, and the value that the key has while the caller owns the lock.
type Lock struct{ Key, Holds string }

// LockedError reports that another process owns a lock.
type LockedError struct {
	Holds string
	Left  time.Duration // until it expires, unless its owner renews it
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("another has the lock for at least %v, by %q", e.Left, clip(e.Holds))
}

// ErrUnlocked reports that the caller no longer owns a lock.
var ErrUnlocked = errors.New("a lock has ended, or is another's")

// TakeLock takes a lock, or renews it if the caller owns it already. The caller must own every lock in own.
// The error is a *LockedError or ErrUnlocked.
func (s *Store) TakeLock(ctx context.Context, l Lock, length time.Duration, own ...Lock) error {
	call := s.locks("take", length, append([]Lock{l}, own...))
	reply, err := s.Call(ctx, call.Script, call.Keys, call.Args...)
	if err != nil {
		return err
	}
	if len(reply) == 3 && reply[0] == "busy" {
		e := new(LockedError)
		e.Holds, _ = reply[1].(string)
		ms, _ := reply[2].(int64)
		e.Left = time.Duration(max(ms, 0)) * time.Millisecond
		return e
	}
	return locked(reply)
}

// RenewLocks extends locks by length from now, each on its shard. The error is ErrUnlocked if the caller
// doesn't own one.
func RenewLocks(ctx context.Context, length time.Duration, shards []*Store, locks []Lock) error {
	calls := make([]ScriptCall, len(locks))
	for i, s := range shards {
		calls[i] = s.locks("renew", length, locks[i:i+1])
	}
	replies, errs := CallEach(ctx, calls)
	for i, err := range errs {
		if err == nil {
			err = locked(replies[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ReleaseLocks releases the locks that the caller owns, each on its shard.
func ReleaseLocks(ctx context.Context, shards []*Store, locks []Lock) error {
	calls := make([]ScriptCall, len(locks))
	for i, s := range shards {
		calls[i] = s.locks("release", 0, locks[i:i+1])
	}
	if len(calls) == 0 {
		return nil
	}
	_, errs := CallEach(ctx, calls)
	return errors.Join(errs...)
}

// locks returns a call of lock.lua.
func (s *Store) locks(what string, length time.Duration, all []Lock) ScriptCall {
	call := ScriptCall{Store: s, Script: lua.Lock, Args: []any{what, length.Milliseconds()}}
	for _, l := range all {
		call.Keys, call.Args = append(call.Keys, l.Key), append(call.Args, l.Holds)
	}
	return call
}

func locked(reply []any) error {
	switch {
	case len(reply) == 1 && reply[0] == "done":
		return nil
	case len(reply) == 2 && reply[0] == "lost":
		return fmt.Errorf("%w (%v)", ErrUnlocked, reply[1])
	}
	return Unexpected(lua.Lock, reply)
}
