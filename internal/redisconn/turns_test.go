package redisconn

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/test/testenv"
)

// slowServer executes one call at a time, each for a second.
func slowServer() (process redis.ProcessHook, most *int) {
	one := make(chan struct{}, 1)
	flying := make(chan int, 1)
	flying <- 0
	most = new(int)
	return newTurns().ProcessHook(func(context.Context, redis.Cmder) error {
		n := <-flying + 1
		*most = max(*most, n)
		flying <- n
		one <- struct{}{}
		time.Sleep(time.Second)
		<-one
		flying <- <-flying - 1
		return nil
	}), most
}

func TestFewCallsAreOnTheirWayToAServerAtOnceAndEachTakesItsOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		call, most := slowServer()
		const calls = 12
		took := make([]time.Duration, calls)
		ended := make(chan error, calls)
		began := time.Now()
		for i := range calls {
			go func() { ended <- call(InTurn(t.Context(), &took[i]), redis.NewCmd(t.Context(), "evalsha")) }()
			synctest.Wait() // so that the calls reach the server in the order of their numbers
		}
		for range calls {
			require.NoError(t, <-ended)
		}
		require.Equal(t, CallsInTurn, *most)
		require.Equal(t, calls*time.Second, time.Since(began), "the server is never idle")
		for _, took := range took {
			require.Equal(t, time.Second, took, "its own, without those of the calls before and beside it")
		}
	})
}

func TestOnlyCallsInTurnWaitForOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		call, most := slowServer()
		const calls = 12
		ended := make(chan error, calls)
		for range calls {
			go func() { ended <- call(t.Context(), redis.NewCmd(t.Context(), "hget")) }()
		}
		for range calls {
			require.NoError(t, <-ended)
		}
		require.Equal(t, calls, *most)
	})
}

func TestAWaitForATurnEndsWithItsContextAndAtTheCallsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns()
		answer := make(chan struct{})
		silent := turns.ProcessHook(func(context.Context, redis.Cmder) error { <-answer; return nil })
		stuck := make(chan error, CallsInTurn)
		for range CallsInTurn {
			go func() { stuck <- silent(InTurn(t.Context(), new(time.Duration)), redis.NewCmd(t.Context())) }()
		}
		synctest.Wait()

		began, took := time.Now(), time.Duration(0)
		cmd := redis.NewCmd(t.Context())
		err := silent(InTurn(Within(t.Context(), 5*time.Second), &took), cmd)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, err, cmd.Err())
		require.True(t, Unreachable(err))
		require.Equal(t, 5*time.Second, time.Since(began))
		require.Zero(t, took)

		over := errors.New("the generation is over")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(over) })
		require.ErrorIs(t, silent(InTurn(Within(ctx, time.Minute), &took), redis.NewCmd(t.Context())), over)

		close(answer)
		for range CallsInTurn {
			require.NoError(t, <-stuck)
		}
		require.NoError(t, silent(InTurn(t.Context(), &took), redis.NewCmd(t.Context())), "a turn that was waited for in vain is nobody's")
	})
}

// Each master of a cluster has its own turns, and shards on one master share them.
func TestEveryServersClientHasTurns(t *testing.T) {
	for name, kind := range silentKinds(t) {
		t.Run(name, func(t *testing.T) {
			s, client := kind(t)
			key := testenv.Prefix(t) + "key"
			require.NoError(t, client.Set(t.Context(), key, "", time.Hour).Err())
			s.hold(true)
			const calls = 5
			ended := make(chan error, calls)
			for range calls {
				go func() { ended <- client.Get(InTurn(t.Context(), new(time.Duration)), key).Err() }()
			}
			require.Eventually(t, func() bool { return s.waiting() >= CallsInTurn }, 30*time.Second, time.Millisecond)
			require.Never(t, func() bool { return s.waiting() > CallsInTurn }, 200*time.Millisecond, 10*time.Millisecond)
			s.hold(false)
			for range calls {
				require.NoError(t, <-ended)
			}
		})
	}
}
