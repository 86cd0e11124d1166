package bans

import (
	"context"
	"errors"
	"time"

	"github.com/standings/standings/internal/retry"
)

// Desk bans, unbans and looks up members for the commands and the API. It writes to the topic, and reads the
// standings to see whether a change was applied. It does not write to the standings.
type Desk struct {
	Publisher *Publisher
	// Standings returns the current standings. A reshard replaces them; bans do not apply to the old ones.
	Standings func(ctx context.Context) (Standings, error)
}

// Now returns the standings' time, which decides when bans end, in ms precision. If the standings cannot be read,
// it returns this machine's time.
func (d *Desk) Now(ctx context.Context) time.Time {
	s, err := d.Standings(ctx)
	if err != nil {
		return milliseconds(time.Now())
	}
	return nowOf(ctx, s)
}

func nowOf(ctx context.Context, s Standings) time.Time {
	now, err := s.Now(ctx)
	if err != nil {
		now = time.Now()
	}
	return milliseconds(now)
}

// States of a record.
const (
	StateBanned = "banned"
	StateErased = "erased"
	StateOver   = "over" // the ban's time is over
)

// Listed is a record of the topic, and whether it was applied.
type Listed struct {
	*Record

	State string
	Done  *bool // whether the standings match the state; nil: they could not be read
}

// List returns all records of the topic that were read so far, by member and then by board. If the standings
// cannot be read, it returns the list together with the error.
func (d *Desk) List(ctx context.Context) ([]Listed, error) {
	now := milliseconds(time.Now())
	held := map[Key]Ban{}
	s, err := d.Standings(ctx)
	if err == nil {
		now = nowOf(ctx, s)
		var found []Ban
		found, err = s.Banned(ctx)
		for _, b := range found {
			held[b.Key] = b
		}
	}
	all := []Listed{}
	for _, r := range d.Publisher.Follower.State().All() {
		l := Listed{Record: r, State: stateOf(r, now)}
		if err == nil {
			done := agree(r, now, r.Key, held)
			l.Done = &done
		}
		all = append(all, l)
	}
	return all, err
}

func stateOf(r *Record, now time.Time) string {
	switch {
	case r.Erased:
		return StateErased
	case r.InForce(now):
		return StateBanned
	}
	return StateOver
}

// ErrNotYet reports that no consumer has applied the change to the standings. A running consumer does so when it
// reads the topic.
var ErrNotYet = errors.New("no consumer has done it in Redis yet")

// looks is the schedule on which Await reads the standings.
var looks = retry.Policy{First: 20 * time.Millisecond, Longest: 500 * time.Millisecond}

// Await waits until the standings match the topic for a key, or the context ends. The error is then ErrNotYet, or
// why the standings could not be read.
func (d *Desk) Await(ctx context.Context, k Key) error {
	var last error
	for wait := looks.Start(); ; {
		done, err := d.done(ctx, k)
		if done && err == nil {
			return nil
		}
		if ctx.Err() == nil { // else the end of the wait has cut off the call
			last = err
		}
		if wait.Next(ctx) != nil {
			break
		}
	}
	if last != nil {
		return last
	}
	return ErrNotYet
}

func (d *Desk) done(ctx context.Context, k Key) (bool, error) {
	s, err := d.Standings(ctx)
	if err != nil {
		return false, err
	}
	now, err := s.Now(ctx)
	if err != nil {
		return false, err
	}
	found, err := s.Banned(ctx)
	if err != nil {
		return false, err
	}
	held := map[Key]Ban{}
	for _, b := range found {
		held[b.Key] = b
	}
	return agree(d.Publisher.Follower.State()[k], now, k, held), nil
}

// agree reports whether the standings match a key's record. Without a record the key must not be banned.
func agree(r *Record, now time.Time, k Key, held map[Key]Ban) bool {
	inForce := r != nil && r.InForce(now)
	b, ok := held[k]
	if !ok {
		return !inForce
	}
	return inForce && !b.Pending && b.Erased == r.Erased
}
