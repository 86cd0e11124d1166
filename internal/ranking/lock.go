package ranking

// Locks with an expiry: those of rebuilds and reshards, and their holds.

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/standings/standings/internal/ranking/lua"
	"github.com/standings/standings/internal/redisconn"
)

// Lock is a lock's key, and the value that the key has while the caller owns the lock.
type Lock struct{ Key, Holds string }

// LockedError reports that another process owns a lock.
type LockedError struct {
	Holds string
	Left  time.Duration // until it expires, unless its owner renews it
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("another has the lock for at least %v, by %q", e.Left, Clip(e.Holds))
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

// CopyOf returns which unfinished reshard writes the shard as its copy; empty if none does.
func (s *Store) CopyOf(ctx context.Context) (string, error) {
	whose, err := s.client.Get(redisconn.Within(ctx, s.timeout), s.keys.Copy()).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("look for an unfinished copy under %q: %w", s.prefix, s.explain(err, ""))
	}
	return whose, nil
}

// The leader's lease. One of several processes leads and does what only one process may do, such as writing
// the archive.
//
// The lease is one Redis key for all shards, and Redis's clock decides when it ends. The lease decides
// which process may start to write. The token, which a leader passes with every write, decides whose writes
// are accepted.
//
// - Redis goes back, to a replica that was behind or to an older dump. The key then has an earlier leader,
//   or an earlier token, which is given out again. The leader whose lease is lost notices that at its next
//   renewal.
// - Redis is wiped. The next token is the one after the floor; it may have been given out before.
// - In both cases two processes may have the same token. The first one that writes with the token keeps it:
//   the archive refuses the other process, which takes the lease again with a larger floor.
// - A call gets no answer. The owner takes the lease again at once and leads with the next token.
// - A leader is paused past the end of its lease. Another process leads with a larger token, and later
//   writes of the first one are refused.
// - The clock jumps: see lead.lua.

// MaxToken is the largest possible token of a leader.
const MaxToken = 1<<53 - 1

// Errors of the leader's lease.
var (
	// ErrNotLeader reports that this owner no longer has the lease, or not with this token.
	ErrNotLeader = errors.New("it doesn't lead any more")
	// ErrNoToken reports that no larger token exists.
	ErrNoToken = errors.New("there is no larger token of a leader")
)

// LeaderError reports that another process leads.
type LeaderError struct {
	Owner string
	For   time.Duration // until the lease ends, unless the owner renews it
}

func (e *LeaderError) Error() string { return fmt.Sprintf("%s leads, for another %v", e.Owner, e.For) }

// Lead takes the leader's lease for length if no other owner has it, and returns the token to lead with.
// The token is larger than floor and than any token that this Redis gave out before. If another owner
// leads, the error is a *LeaderError. An owner that leads already gets a new token.
func (s *Store) Lead(ctx context.Context, owner string, floor int64, length time.Duration) (token int64, err error) {
	if floor < 0 || floor >= MaxToken {
		return 0, fmt.Errorf("lead under %q: %w than %d", s.prefix, ErrNoToken, floor)
	}
	if token, err = s.lead(ctx, owner, "", floor, length); err != nil {
		return 0, fmt.Errorf("lead under %q: %w", s.prefix, err)
	}
	return token, nil
}

// KeepLead renews the lease for length from now. It also renews a lease that has ended if no other owner
// took it. If another owner has the lease, or no owner does, the error is ErrNotLeader.
func (s *Store) KeepLead(ctx context.Context, owner string, token int64, length time.Duration) error {
	if _, err := s.lead(ctx, owner, strconv.FormatInt(token, 10), 0, length); err != nil {
		return fmt.Errorf("go on leading under %q: %w", s.prefix, err)
	}
	return nil
}

// LeaveLead releases the lease, so that the next leader need not wait. If another owner has it, the error
// is ErrNotLeader.
func (s *Store) LeaveLead(ctx context.Context, owner string, token int64) error {
	if _, err := s.lead(ctx, owner, strconv.FormatInt(token, 10), 0, 0); err != nil {
		return fmt.Errorf("stop leading under %q: %w", s.prefix, err)
	}
	return nil
}

func (s *Store) lead(ctx context.Context, owner, by string, floor int64, length time.Duration) (int64, error) {
	reply, err := s.Call(ctx, lua.Lead, []string{LeaderKey(s.prefix)}, owner, by, floor, length.Milliseconds())
	if err != nil {
		return 0, err
	}
	words, err := Texts(reply)
	if err != nil || len(words) == 0 {
		return 0, Unexpected(lua.Lead, reply)
	}
	switch {
	case words[0] == "lost":
		return 0, ErrNotLeader
	case words[0] == "full":
		return 0, ErrNoToken
	case words[0] == "unknown" && len(words) == 2:
		return 0, Faultf("%s holds %q, which no leader writes", LeaderKey(s.prefix), Clip(words[1]))
	case words[0] == "busy" && len(words) == 3:
		left, err := strconv.ParseInt(words[2], 10, 64)
		if err != nil {
			return 0, Unexpected(lua.Lead, reply)
		}
		return 0, &LeaderError{words[1], time.Duration(left) * time.Millisecond}
	case words[0] != "leads" || len(words) != 2:
		return 0, Unexpected(lua.Lead, reply)
	}
	token, err := strconv.ParseInt(words[1], 10, 64)
	if err != nil {
		return 0, Unexpected(lua.Lead, reply)
	}
	return token, nil
}

// ErrRebuilding reports that a rebuild is running, which would bring dropped windows back.
var ErrRebuilding = errors.New("a rebuild is under way, or was killed less than a minute ago")
