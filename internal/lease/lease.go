// Package lease has one process at a time do what only one is to do: it holds the lease of the
// leader in Redis while the work goes on, and stops the work before the lease ends.
//
//	         take                       two thirds of the lease without a renewal,
//	waits ─────────▶ leads ──────────▶  somebody else leads, or the work ended  ──▶ work stopped
//	  ▲   token      renews each third of the lease                                    │ and ended
//	  └────────────────────────────────────────────────────────────────────────────────┘ let go of
//
// Time is this process's own, of its monotonic clock, from before the call that took or renewed the
// lease: however long the answer was on its way, Redis's lease ends later, as long as the two clocks
// run equally fast. That isn't certain: a process that is paused, or a machine that is suspended,
// doesn't see time go by, and Redis's clock can jump. So that there is one leader at a time is what
// mostly holds, and saves work; that one alone writes is the token's to see to, wherever it writes.
package lease

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/retry"
)

// Redis keeps the lease: a *ranking.Store does.
type Redis interface {
	Lead(ctx context.Context, owner string, floor int64, length time.Duration) (token int64, err error)
	KeepLead(ctx context.Context, owner string, token int64, length time.Duration) error
	LeaveLead(ctx context.Context, owner string, token int64) error
}

// Lease is the leader's, and what it takes to get it.
type Lease struct {
	Redis Redis
	Owner string // as NewOwner makes it, once a process
	// Length is how long a leader that died goes on being it; at least MinLength.
	Length time.Duration
	// Floor is the largest token that anything was written by: a new one has to be larger.
	Floor func(context.Context) (int64, error)
	// Leading, where there is one, is called with the token once this process leads, and with 0
	// once it doesn't any more.
	Leading func(token int64)
	// Other, where there is one, is called with who leads, each time that it is found to be another process.
	Other func(owner string)
	Log   *zap.Logger
}

// MinLength is the shortest lease: a third of it is for a call to Redis and what delays it.
const MinLength = time.Second

// NewOwner is a name for this process, from now on: no other has it, nor has the same after a
// restart.
func NewOwner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "?"
	}
	return fmt.Sprintf("%s/%d/%s", host, os.Getpid(), rand.Text()[:10])
}

// Causes of the end of a leader's context.
var (
	// ErrExpired: Redis couldn't be reached for as long as the lease is safe.
	ErrExpired = errors.New("the leader's lease couldn't be renewed in time")
	errEnded   = errors.New("the leader's work has ended")
)

// Run calls do whenever this process leads, with its token and a context that ends before the
// lease does, or once somebody else leads. It waits for do to return; where do does so by itself,
// with an error or without, somebody may lead next, this process again after a while. Run returns
// once its context has ended, and do has, and the lease is let go of; the error is nil.
func (l *Lease) Run(ctx context.Context, do func(ctx context.Context, token int64) error) error {
	if l.Length < MinLength || l.Owner == "" {
		return fmt.Errorf("a lease of %v for the owner %q: it has to be %v at least, and somebody's", l.Length, l.Owner, MinLength)
	}
	for ctx.Err() == nil {
		h, ok := l.take(ctx)
		if !ok {
			break
		}
		l.Log.Info("this process leads", zap.Int64("token", h.token))
		err := h.hold(ctx, do)
		l.leave(ctx, h.token)
		if ctx.Err() == nil {
			l.Log.Warn("this process doesn't lead any more", zap.Int64("token", h.token), zap.Error(err))
		}
		_ = retry.Sleep(ctx, l.wait(l.Length/3)) // so that another may
	}
	return nil
}

// wait is a time from a half to one and a half times of d: who lost the lease together doesn't
// come back together.
func (l *Lease) wait(d time.Duration) time.Duration { return d/2 + mathrand.N(d) }

// take waits until this process leads; ok is false where the context has ended before.
func (l *Lease) take(ctx context.Context) (h *held, ok bool) {
	var failed, other retry.LogLimit
	pauses := retry.Policy{First: 50 * time.Millisecond, Longest: l.Length / 3}.Start()
	for ctx.Err() == nil {
		from := time.Now()
		token, err := l.lead(ctx)
		if err == nil {
			return &held{Lease: l, token: token, from: from}, true
		}
		pause, _ := pauses.Pause()
		if leader, ok := errors.AsType[*ranking.LeaderError](err); ok {
			pauses.Reset()
			if l.Other != nil {
				l.Other(leader.Owner)
			}
			pause = l.wait(min(max(leader.For, l.Length/10), l.Length/3))
			if other.Due(time.Hour) {
				l.Log.Info("another process leads", zap.String("owner", leader.Owner))
			}
		} else if ctx.Err() == nil && failed.Due(time.Minute) {
			l.Log.Warn("the leader's lease can't be taken; it is tried again", zap.Error(err))
		}
		_ = retry.Sleep(ctx, pause) // the loop looks at the context
	}
	return nil, false
}

func (l *Lease) lead(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, l.Length/3)
	defer cancel()
	floor, err := l.Floor(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the largest token that was written by: %w", err)
	}
	return l.Redis.Lead(ctx, l.Owner, floor, l.Length)
}

// leave lets go of the lease, by time of its own: the context may have ended.
func (l *Lease) leave(ctx context.Context, token int64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.Length/3)
	defer cancel()
	if err := l.Redis.LeaveLead(ctx, l.Owner, token); err != nil && !errors.Is(err, ranking.ErrNotLeader) {
		l.Log.Warn("the leader's lease can't be let go of: the next leader waits for its end", zap.Error(err), zap.Duration("at_most", l.Length))
	}
}
