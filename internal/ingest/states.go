package ingest

import (
	"context"
	"sync"

	"github.com/standings/standings/internal/ledger"
)

// states reads the states of all shards on behalf of many workers: a state is of all
// partitions, and hundreds of workers would each read it as a generation begins. Nobody
// is given a state from before they wanted one: whoever comes while a call is under way
// shares the next one.
type states struct {
	ask func(context.Context) ([]ledger.State, error)

	mu      sync.Mutex    // guards next
	next    *stateCall    // nil: nobody waits
	calling chan struct{} // a token: taken while a call is under way
}

// stateCall is a call that some wait for. What it returned is written before done is closed, and
// read after.
type stateCall struct {
	done   chan struct{}
	states []ledger.State
	err    error
}

func newStates(ask func(context.Context) ([]ledger.State, error)) *states {
	return &states{ask: ask, calling: make(chan struct{}, 1)}
}

// get are the states as of now or later, one a shard. They are shared: nobody changes them.
func (s *states) get(ctx context.Context) ([]ledger.State, error) {
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

// call asks for all who have come by the time that the call before is over. Its
// context is the first one's: a generation ends for all of them.
func (s *states) call(ctx context.Context, a *stateCall) {
	defer close(a.done)
	select {
	case s.calling <- struct{}{}:
		defer func() { <-s.calling }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil { // the one before may have let go because of that
		a.err = context.Cause(ctx)
	}
	s.mu.Lock()
	s.next = nil
	s.mu.Unlock()
	if a.err == nil {
		a.states, a.err = s.ask(ctx)
	}
}
