package ingest

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
)

func TestHundredsOfWorkersShareAFewQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		s := newStates(func(context.Context) ([]ledger.State, error) {
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
				state, err := s.get(t.Context())
				require.NoError(t, err)
				require.False(t, state[0].Now.Before(asked), "an answer is never older than its question")
			})
		}
		all.Wait()
		require.Equal(t, 2, calls)
		_, err := s.get(t.Context())
		require.NoError(t, err)
		require.Equal(t, 3, calls)
	})
}

func TestAQuestionEndsWithItsContextAndNobodyIsLeftWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung, fails := make(chan struct{}), true
		s := newStates(func(context.Context) ([]ledger.State, error) {
			if fails {
				<-hung
				return []ledger.State{{}}, errLost
			}
			return []ledger.State{{Windows: 7}}, nil
		})
		ctx, cancel := context.WithCancelCause(t.Context())
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() {
				_, err := s.get(ctx)
				if i == 0 {
					require.Error(t, err)
					return
				}
				require.ErrorIs(t, err, errGenerationEnded)
			})
			synctest.Wait()
		}
		cancel(errGenerationEnded)
		synctest.Wait()
		close(hung)
		all.Wait()
		fails = false
		state, err := s.get(t.Context())
		require.NoError(t, err)
		require.Equal(t, 7, state[0].Windows)
	})
}
