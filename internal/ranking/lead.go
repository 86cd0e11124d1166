package ranking

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

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/standings/standings/internal/ranking/lua"
)

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
		return 0, Faultf("%s holds %q, which no leader writes", LeaderKey(s.prefix), clip(words[1]))
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
