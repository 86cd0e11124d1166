// Package jobs runs the jobs that one replica at a time may run. That replica is the leader.
//
//	            takes the lease            another process has the lease, a renewal is too late,
//	follower ───────────────────▶ leader ────────────────────────────────────────────────────────▶ lost
//	   ▲          next token      renews the lease,      or a job is fenced                         │
//	   │                          runs every job                                                    │
//	   └────────────────────────────────────────────────────────────────────────────────────────────┘
//	                 the jobs' contexts have ended, all jobs have returned, the lease is released
//
// Promise: while replicas run and Redis answers, one of them runs every job. If the leader dies, another one
// starts every job when the lease has ended, or a tenth of its length later. If the leader ends in order, it
// releases the lease.
//
// Invariant: a process starts a job only during a term, which has a token of its own, and it ends the term
// before Redis ends the lease. Within a term each job is one goroutine: a job that fails or hangs does not delay
// another one. A job keeps nothing from one term to the next.
//
// A process measures the lease by its monotonic clock, from before the call that took or renewed it, so Redis
// ends the lease later than the process does. That fails if a process is paused, a machine is suspended, or
// Redis's clock jumps: then two processes run the same job for a moment. So the lease saves work, and protects
// nothing. What a job writes must be safe with two leaders:
//
//	sealing      the script compares the ledger, the clock and the listing
//	archiving    every transaction compares the token and the owner (archive/store)
//	publishing   the coordinator fences the earlier producer (archive/topic)
//	others       read, or delete only what is over
//
// No job waits for another one by a channel. A job learns from Redis or from the archive what there is to do, so
// it does not matter which replica ran the job before.
package jobs

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

// Redis stores the lease. A *ranking.Store implements it.
type Redis interface {
	Lead(ctx context.Context, owner string, floor int64, length time.Duration) (token int64, err error)
	KeepLead(ctx context.Context, owner string, token int64, length time.Duration) error
	LeaveLead(ctx context.Context, owner string, token int64) error
}

// Leader takes the lease again and again, and runs the jobs while it has it.
type Leader struct {
	Redis Redis
	Owner string // from NewOwner
	// Length is how long the lease of a leader that died lasts; at least MinLength.
	Length time.Duration
	// Jobs returns the jobs of a term. It is called at the start of each term, so that no job continues with
	// what it knew in an earlier term.
	Jobs func(Term) []Job
	// Leading, if given, is called with true before the jobs of a term start, and with false after they have
	// returned.
	Leading func(bool)
	// Report, if given, is called after each run of a job, with its name and error.
	Report func(job string, err error)
	// Other, if given, is called with the owner of the lease each time that another process has it.
	Other func(owner string)
	Log   *zap.Logger
}

// Term identifies a term. What a job writes is fenced by it.
type Term struct {
	Owner string
	// Token is larger than that of every earlier term, unless Redis went back in time: see FencedError.
	Token int64
}

// FencedError is the error of a job that may not write, because the place that it writes to has a larger token, or the
// same token of another owner. It ends the term. The process takes the lease again, with a token larger than Floor.
type FencedError struct {
	Floor int64
	Err   error
}

func (e *FencedError) Error() string { return e.Err.Error() }
func (e *FencedError) Unwrap() error { return e.Err }

// ErrExpired is the cause of a job's context if the lease was not renewed in time.
var ErrExpired = errors.New("the leader's lease couldn't be renewed in time")

// MinLength is the shortest lease: a call to Redis may take a third of it.
const MinLength = time.Second

// NewOwner returns a name for this process that no other process has, nor this one after a restart.
func NewOwner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "?"
	}
	return fmt.Sprintf("%s/%d/%s", host, os.Getpid(), rand.Text()[:10])
}

// Run leads whenever no other process does, until the context ends, all jobs have returned and the lease is released.
// The error is of a Leader that can't lead at all.
func (l *Leader) Run(ctx context.Context) error {
	if l.Length < MinLength || l.Owner == "" {
		return fmt.Errorf("a lease of %v for the owner %q: it must be %v at least, and have an owner", l.Length, l.Owner, MinLength)
	}
	floor := int64(0)
	for ctx.Err() == nil {
		t, ok := l.take(ctx, floor)
		if !ok {
			break
		}
		l.Log.Info("this process leads", zap.Int64("token", t.token))
		err := t.hold(ctx)
		l.leave(ctx, t.token)
		if ctx.Err() != nil {
			break
		}
		l.Log.Warn("this process doesn't lead any more", zap.Int64("token", t.token), zap.Error(err))
		if fenced, ok := errors.AsType[*FencedError](err); ok {
			floor = max(floor, fenced.Floor)
		}
		_ = retry.Sleep(ctx, l.around(l.Length/10)) // the loop checks the context
	}
	return nil //nolint:nilerr // the context has ended
}

// around returns a random time from a half to one and a half times of d, so that processes that lost the lease together
// don't return together.
func (l *Leader) around(d time.Duration) time.Duration { return d/2 + mathrand.N(d) }

// take waits until this process has the lease; ok is false if the context ended first.
func (l *Leader) take(ctx context.Context, floor int64) (t *term, ok bool) {
	var failed, other retry.LogLimit
	pauses := retry.Policy{First: 50 * time.Millisecond, Longest: l.Length / 3}.Start()
	for ctx.Err() == nil {
		from := time.Now()
		token, err := l.lead(ctx, floor)
		if err == nil {
			return &term{Leader: l, token: token, from: from}, true
		}
		pause, _ := pauses.Pause()
		if leader, ok := errors.AsType[*ranking.LeaderError](err); ok {
			pauses.Reset()
			if l.Other != nil {
				l.Other(leader.Owner)
			}
			pause = l.around(l.Length / 15)
			if other.Due(time.Hour) {
				l.Log.Info("another process leads", zap.String("owner", leader.Owner))
			}
		} else if ctx.Err() == nil && failed.Due(time.Minute) {
			l.Log.Warn("the leader's lease can't be taken; it is tried again", zap.Error(err))
		}
		_ = retry.Sleep(ctx, pause) // the loop checks the context
	}
	return nil, false
}

func (l *Leader) lead(ctx context.Context, floor int64) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, l.Length/3)
	defer cancel()
	return l.Redis.Lead(ctx, l.Owner, floor, l.Length)
}

// leave releases the lease. It has a deadline of its own, because the context may have ended.
func (l *Leader) leave(ctx context.Context, token int64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.Length/3)
	defer cancel()
	if err := l.Redis.LeaveLead(ctx, l.Owner, token); err != nil && !errors.Is(err, ranking.ErrNotLeader) {
		l.Log.Warn("the leader's lease can't be released: the next leader waits for its end", zap.Error(err), zap.Duration("at_most", l.Length))
	}
}
