package bans

import (
	"context"
	"errors"
	"time"

	"github.com/standings/standings/internal/retry"
)

// Desk is where members are banned, shown again and looked up, by the commands and by the API: it
// writes the topic, and sees in the standings what has become of that. It writes nothing to them.
type Desk struct {
	Publisher *Publisher
	// Standings are those that there are at the moment: after a reshard they are others, and on
	// those that were nobody is banned.
	Standings func(ctx context.Context) (Standings, error)
}

// Now is the standings' time, which bans end by; where they are away, this machine's. It is to the
// ms.
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
	StateOver   = "over" // it has ended by itself
)

// Listed is a record of the topic, and what has become of it.
type Listed struct {
	*Record

	State string
	Done  *bool // the standings are as the state says; nil: they couldn't be looked at
}

// List are all records of the topic, as far as it was read, by member and then by board. With an
// error the standings couldn't be looked at, and the list is there all the same.
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

// ErrNotYet says that no consumer has brought the standings in line: one that runs will, as soon as
// it reads the topic.
var ErrNotYet = errors.New("no consumer has done it in Redis yet")

// looks is how often the standings are looked at by whoever waits.
var looks = retry.Policy{First: 20 * time.Millisecond, Longest: 500 * time.Millisecond}

// Await waits until the standings hold of a key what the topic says, for as long as the context
// lasts. An error is ErrNotYet, or why they couldn't be looked at.
func (d *Desk) Await(ctx context.Context, k Key) error {
	var last error
	for wait := looks.Start(); ; {
		var done bool
		if done, last = d.done(ctx, k); done && last == nil {
			return nil
		}
		if wait.Next(ctx) != nil {
			break
		}
	}
	if last != nil && !errors.Is(last, context.DeadlineExceeded) {
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

// agree reports whether the standings hold a key as its record says; no record: it isn't banned.
func agree(r *Record, now time.Time, k Key, held map[Key]Ban) bool {
	inForce := r != nil && r.InForce(now)
	b, ok := held[k]
	if !ok {
		return !inForce
	}
	return inForce && !b.Pending && b.Erased == r.Erased
}
