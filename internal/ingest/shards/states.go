package shards

import (
	"context"
	"sync"

	"github.com/standings/standings/internal/ledger"
)

// States reads the states of all shards for many workers: a state covers all partitions, and without sharing,
// hundreds of workers would each read it when a generation begins. A caller never gets a state that was read
// before its call: a caller that arrives during a read shares the next one.
type States struct {
	ask func(context.Context) ([]ledger.State, error)

	mu      sync.Mutex    // guards next
	next    *stateCall    // nil: no caller waits
	calling chan struct{} // a token: taken while a call is under way
}

// stateCall is a read for which callers wait. Its result is written before done is closed, and read afterwards.
type stateCall struct {
	done   chan struct{}
	states []ledger.State
	err    error
}

// NewStates returns states that ask reads.
func NewStates(ask func(context.Context) ([]ledger.State, error)) *States {
	return &States{ask: ask, calling: make(chan struct{}, 1)}
}

// Get returns the states as of now or later, one per shard. They are shared: callers must not change them.
func (s *States) Get(ctx context.Context) ([]ledger.State, error) {
	s.mu.Lock()
	a, first := s.next, s.next == nil
	if first {
		a = &stateCall{done: make(chan struct{})}
		s.next = a
	}
	s.mu.Unlock()
	if first {
		s.call(ctx, a)
		return a.states, a.err
	}
	select {
	case <-a.done:
		return a.states, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// call reads the states for all callers that have arrived when the previous call is over. Its context is that
// of the first caller: a generation ends for all of them.
func (s *States) call(ctx context.Context, a *stateCall) {
	defer close(a.done)
	select {
	case s.calling <- struct{}{}:
		defer func() { <-s.calling }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil { // the previous caller may have released the token because ctx ended
		a.err = context.Cause(ctx)
	}
	s.mu.Lock()
	s.next = nil
	s.mu.Unlock()
	if a.err == nil {
		a.states, a.err = s.ask(ctx)
	}
}
