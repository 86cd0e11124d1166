package ranking

// Who of several processes leads: what only one is to do, as is writing the archive.
//
// The lease is a key of Redis, by Redis's clock, the same whatever number of shards there is. It
// says who may begin, not who may write: that is the token's to say, wherever the leader writes.
//
//	Redis goes back, to a replica that was behind or an older dump: the key holds an earlier
//	leader, or an earlier token, which is given again. A leader by the lease that is gone
//	finds itself not to be it at its next renewal.
//	Redis is wiped: the next token is the one after the floor, which may have been given before.
//	In both two processes may have the same token. Whoever writes by it first has it: the archive
//	refuses the other, who takes the lease again with a larger floor.
//	A call has no answer: the owner takes the lease again, at once, and leads by the next token.
//	A leader is paused past its lease: another leads by a larger token, and what the first still
//	writes is refused.
//	The clock jumps: lead.lua.

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/standings/standings/internal/ranking/lua"
)

// MaxToken is the largest token of a leader.
const MaxToken = 1<<53 - 1

// Errors of a leader's lease.
var (
	// ErrNotLeader: the lease isn't this owner's any more, or not by this token.
	ErrNotLeader = errors.New("it doesn't lead any more")
	// ErrNoToken: all are given.
	ErrNoToken = errors.New("there is no larger token of a leader")
)

// LeaderError says that another leads.
type LeaderError struct {
	Owner string
	For   time.Duration // at the most, unless it renews
}

func (e *LeaderError) Error() string { return fmt.Sprintf("%s leads, for another %v", e.Owner, e.For) }

// Lead takes the lease of the leader for a length, if nobody else has it, and returns the token to
// lead by: larger than any that this Redis gave before, and than floor. The error is a *LeaderError
// where somebody else leads. An owner that leads already gets another token.
func (s *Store) Lead(ctx context.Context, owner string, floor int64, length time.Duration) (token int64, err error) {
	if floor < 0 || floor >= MaxToken {
		return 0, fmt.Errorf("lead under %q: %w than %d", s.prefix, ErrNoToken, floor)
	}
	if token, err = s.lead(ctx, owner, "", floor, length); err != nil {
		return 0, fmt.Errorf("lead under %q: %w", s.prefix, err)
	}
	return token, nil
}

// KeepLead renews the lease for a length from now: ErrNotLeader where it is another's, or there is
// none. One that has run out and that nobody took is renewed, too.
func (s *Store) KeepLead(ctx context.Context, owner string, token int64, length time.Duration) error {
	if _, err := s.lead(ctx, owner, strconv.FormatInt(token, 10), 0, length); err != nil {
		return fmt.Errorf("go on leading under %q: %w", s.prefix, err)
	}
	return nil
}

// LeaveLead lets go of the lease, so that the next leader need not wait: ErrNotLeader where it is
// another's.
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
