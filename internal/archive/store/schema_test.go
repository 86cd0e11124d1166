package store

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyTheSchemaThatThisProgramKnowsIsUsed(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		s := open(t, url)
		require.ErrorIs(t, s.Check(t.Context()), ErrEmpty)
		require.ErrorIs(t, s.Check(t.Context()), ErrSchemaOlder, "to check changes nothing")
		require.NoError(t, s.Migrate(t.Context()))
		require.NoError(t, s.Check(t.Context()))
		require.NoError(t, s.Migrate(t.Context()))
		require.NoError(t, s.Take(t.Context(), first), "nothing is migrated again")

		_, err := s.write.ExecContext(t.Context(), `INSERT INTO standings_schema (version_id, is_applied) VALUES (99, TRUE)`)
		require.NoError(t, err)
		err = s.Check(t.Context())
		require.ErrorIs(t, err, ErrSchemaNewer)
		require.ErrorContains(t, err, "schema 99, not 5: its schema is newer than this program's: run the version of standings that migrated it")
		require.ErrorIs(t, s.Migrate(t.Context()), ErrSchemaNewer)

		_, err = s.write.ExecContext(t.Context(), `UPDATE standings_schema SET version_id = 4 WHERE version_id > 0`)
		require.NoError(t, err)
		err = s.Migrate(t.Context())
		require.ErrorIs(t, err, ErrSchemaTooOld)
		require.ErrorContains(t, err, "schema 4, not 5: its schema is too old for this program to migrate: set archive.url to an empty database")
	})
}

// A leader that was paused migrates at the same time as the next leader.
func TestSeveralMayMigrateAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		const n = 3
		var all sync.WaitGroup
		errs := make([]error, n)
		for i := range n {
			s := open(t, url)
			all.Go(func() { errs[i] = s.Migrate(context.WithoutCancel(t.Context())) })
		}
		all.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
		var rows int
		require.NoError(t, open(t, url).one(t.Context(), `SELECT count(*) FROM leader`, nil, &rows))
		require.Equal(t, 1, rows)
	})
}
