package shards

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
)

var (
	errGone = errors.New("away")
	errOver = errors.New("ended")
)

func TestHundredsOfWorkersShareAFewQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		s := NewStates(func(context.Context) ([]ledger.State, error) {
			calls++
			began := time.Now()
			time.Sleep(10 * time.Millisecond)
			return []ledger.State{{Now: began}}, nil
		})
		var all sync.WaitGroup
		for i := range 500 {
			all.Go(func() {
				time.Sleep(time.Duration(i%5) * time.Millisecond)
				asked := time.Now()
				state, err := s.Get(t.Context())
				require.NoError(t, err)
				require.False(t, state[0].Now.Before(asked), "an answer is never older than its question")
			})
		}
		all.Wait()
		require.Equal(t, 2, calls)
		_, err := s.Get(t.Context())
		require.NoError(t, err)
		require.Equal(t, 3, calls)
	})
}

func TestAQuestionEndsWithItsContextAndNobodyIsLeftWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung, fails := make(chan struct{}), true
		s := NewStates(func(context.Context) ([]ledger.State, error) {
			if fails {
				<-hung
				return []ledger.State{{}}, errGone
			}
			return []ledger.State{{Windows: 7}}, nil
		})
		ctx, cancel := context.WithCancelCause(t.Context())
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() {
				_, err := s.Get(ctx)
				if i == 0 {
					require.Error(t, err)
					return
				}
				require.ErrorIs(t, err, errOver)
			})
			synctest.Wait()
		}
		cancel(errOver)
		synctest.Wait()
		close(hung)
		all.Wait()
		fails = false
		state, err := s.Get(t.Context())
		require.NoError(t, err)
		require.Equal(t, 7, state[0].Windows)
	})
}
