package bans

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"pgregory.net/rapid"
)

// keeper returns a keeper whose follower reads nothing: the test sets what it has read.
func keeper(s *fake, state State) *Keeper {
	f := NewFollower(nil, topic, zap.NewNop())
	f.publish(state, 0)
	k := NewKeeper(f, s, zap.NewNop())
	k.upToDate = func(context.Context) error { return nil }
	return k
}

func standings(held ...Ban) *fake {
	s := &fake{held: map[Key]Ban{}, now: at}
	for _, b := range held {
		s.held[b.Key] = b
	}
	return s
}

// Whatever the standings' initial state, and however often their calls fail, they end with the bans in force
// according to the topic, and erased members stay erased.
func TestTheStandingsComeToHoldWhatTheTopicSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, state := standings(), State{}
		for _, k := range []Key{{"", "a"}, {"eu", "a"}, {"", "b"}, {"eu", "c"}} {
			if rapid.Bool().Draw(t, "held") {
				s.held[k] = Ban{Key: k, Erased: k.Board == "" && rapid.Bool().Draw(t, "held erased"), Pending: rapid.Bool().Draw(t, "pending")}
			}
			if rapid.Bool().Draw(t, "in the topic") {
				r := of(k)
				r.Erased = k.Board == "" && rapid.Bool().Draw(t, "erased")
				if !r.Erased && rapid.Bool().Draw(t, "ends") {
					r.Until = at.Add(time.Duration(rapid.IntRange(-1, 1).Draw(t, "until")) * time.Second)
				}
				state[k] = r
			}
		}
		want, _ := state.inForce(at)
		for k, b := range s.held {
			if b.Erased {
				want[k] = Ban{Key: k, Erased: true}
			}
		}
		s.fails = rapid.IntRange(0, 3).Draw(t, "failures")
		k, fails := keeper(s, state), s.fails
		for range fails {
			_ = k.Align(context.Background())
		}
		require.NoError(t, k.Align(context.Background()))
		for key, b := range s.held {
			if b.Erased && b.Pending { // stays, whatever the topic has
				s.held[key] = Ban{Key: key, Erased: true}
			}
		}
		require.Equal(t, want, s.held)
		calls := s.calls
		if err := k.Align(context.Background()); err != nil || s.calls > calls && !pendingErasure(s) {
			t.Fatalf("it went on: %d calls, %v", s.calls-calls, err)
		}
	})
}

func pendingErasure(s *fake) bool {
	for _, b := range s.held {
		if b.Erased && b.Pending {
			return true
		}
	}
	return false
}

func TestNothingIsComparedBeforeTheTopicWasRead(t *testing.T) {
	s := standings(Ban{Key: Key{"", "a"}})
	k := NewKeeper(NewFollower(nil, topic, zap.NewNop()), s, zap.NewNop())
	require.ErrorIs(t, k.Align(t.Context()), errNotRead)
	require.Len(t, s.held, 1)
}

func TestABanEndsByItselfWhenTheStandingsClockSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ends := of(Key{"", "a"})
		ends.Until = at.Add(85 * time.Second) // between two regular comparisons
		s := standings()
		k := keeper(s, State{ends.Key: ends, {"", "b"}: of(Key{"", "b"})})
		ctx, cancel := context.WithCancel(t.Context())
		var ended sync.WaitGroup
		ended.Go(func() { k.Watch(ctx) })
		ended.Go(func() { // Redis's clock is in step with this bubble's
			for began := time.Now(); ctx.Err() == nil; time.Sleep(time.Millisecond) {
				s.mu.Lock()
				s.now = at.Add(time.Since(began))
				s.mu.Unlock()
			}
		})
		holds := func(want int) {
			t.Helper()
			synctest.Wait()
			s.mu.Lock()
			defer s.mu.Unlock()
			require.Len(t, s.held, want)
		}
		time.Sleep(84 * time.Second)
		holds(2)
		time.Sleep(1100 * time.Millisecond)
		holds(1)
		// Standings that lost all bans get them again: soon, if Wake was called.
		s.mu.Lock()
		s.held = map[Key]Ban{}
		s.mu.Unlock()
		k.Wake()
		time.Sleep(compareAtMost + time.Millisecond)
		holds(1)
		// A record is applied at once.
		k.Follower.publish(State{}, 1)
		time.Sleep(time.Millisecond)
		holds(0)
		cancel()
		ended.Wait()
	})
}

// While a shard is held, a call that hides a member on it waits. Another Align that waits for this one must still
// end with its own generation; otherwise a process could not end before the hold does.
func TestWhoWaitsForAnotherToBringInLineEndsWithTheirOwnContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keeper(standings(), State{{"", "a"}: of(Key{"", "a"})})
		held := &heldUp{Standings: k.Standings, until: make(chan struct{})}
		k.Standings = held
		var ended sync.WaitGroup
		ended.Go(func() { assert.NoError(t, k.Align(t.Context())) })
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		gaveUp := make(chan error, 1)
		ended.Go(func() { gaveUp <- k.Align(ctx) })
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-gaveUp, context.Canceled)
		close(held.until)
		ended.Wait()
	})
}

// heldUp are standings on which Ban blocks for a while.
type heldUp struct {
	Standings

	until chan struct{}
}

func (h *heldUp) Ban(ctx context.Context, b Ban) error {
	<-h.until
	return h.Standings.Ban(ctx, b)
}

// A replica that has not read the record of a ban yet finds a member hidden by a replica that has.
func TestNobodyIsShownByWhoHasNotReadTheTopicToItsEnd(t *testing.T) {
	s, a, b := standings(Ban{Key: Key{"", "a"}}, Ban{Key: Key{"", "b"}}), Key{"", "a"}, Key{"", "b"}
	k := keeper(s, State{})
	k.upToDate = func(context.Context) error { return errors.New("it is away") }
	require.NoError(t, k.Align(t.Context())) // and callers of Align are not blocked
	require.Len(t, s.held, 2)
	k.upToDate = func(context.Context) error {
		k.Follower.publish(State{a: of(a)}, 1)
		return nil
	}
	require.NoError(t, k.Align(t.Context()))
	require.Contains(t, s.held, a)
	require.NotContains(t, s.held, b)
}
