package store

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/test/testenv"
)

// Two replicas share a PgBouncer in transaction mode: a connection may get another session of PostgreSQL for each
// statement. Both migrate at once; one writes, and both read meanwhile.
func TestAPoolOfTransactionsServesTwoReplicas(t *testing.T) {
	database := testenv.Postgres(t)
	through := testenv.PgBouncer(t, database, 2)
	var replicas []*Store
	for range 2 {
		replicas = append(replicas, open(t, through))
	}
	var all sync.WaitGroup
	errs := make([]error, len(replicas))
	for i, s := range replicas {
		all.Go(func() { errs[i] = s.Migrate(context.WithoutCancel(t.Context())) })
	}
	all.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	shown := archived(t, replicas[0], first, final(0), hidden(ranked(1, 500), 7))

	reading, stop := context.WithCancel(t.Context())
	failed := make(chan error, 8)
	var readers sync.WaitGroup
	for n := range cap(failed) {
		readers.Go(func() {
			s := replicas[n%2]
			for reading.Err() == nil {
				_, err := s.Windows(reading, Filter{Board: "global"}, Place{}, 10)
				if err == nil {
					_, err = s.Members(reading, shown.ID, []string{"m7919", "nobody"})
				}
				if err == nil {
					_, err = s.PlaceOfScore(reading, shown.ID, 999_900)
				}
				if err != nil && reading.Err() == nil {
					failed <- err
					return
				}
			}
		})
	}
	leader := Fence{2, "second"}
	for revision := int64(2); revision < 8; revision++ {
		w := final(0)
		w.Revision = revision
		copied := archived(t, replicas[1], leader, w, hidden(ranked(1, 500), 5, 9))
		require.NoError(t, replicas[0].Verify(t.Context(), copied.ID))
	}
	one := archived(t, replicas[1], leader, backup(0, 1), ranked(1, 500))
	require.NoError(t, replicas[1].Verify(t.Context(), one.ID))
	_, err := replicas[1].Erase(t.Context(), leader, ranked(3, 3)[0].Member)
	require.NoError(t, err)
	_, err = replicas[1].Sweep(t.Context(), leader)
	require.NoError(t, err)
	require.ErrorIs(t, replicas[0].Take(t.Context(), first), ErrFenced)
	stop()
	readers.Wait()
	close(failed)
	for err := range failed {
		require.NoError(t, err)
	}
	require.NoError(t, replicas[0].Verify(t.Context(), shown.ID))
}
