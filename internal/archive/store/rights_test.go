package store

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

// executed executes statements as the database's owner.
func executed(t *testing.T, s *Store, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		_, err := s.write.ExecContext(t.Context(), statement)
		require.NoError(t, err, statement)
	}
}

// as returns the archive's URL for another user.
func as(t *testing.T, text, user string) string {
	t.Helper()
	u, err := url.Parse(text)
	require.NoError(t, err)
	u.User = url.UserPassword(user, "a password")
	q := u.Query()
	q.Set("search_path", "standings")
	u.RawQuery = q.Encode()
	return u.String()
}

// These are the rights that docs/archive.md grants.
func TestTheRightsThatAreDocumentedAreEnough(t *testing.T) {
	server := testenv.LocalPostgres(t)
	text := server.Database(t)
	admin := open(t, text)
	database, err := url.Parse(text)
	require.NoError(t, err)
	executed(t, admin,
		`CREATE ROLE owner LOGIN PASSWORD 'a password'`, `CREATE ROLE writer LOGIN PASSWORD 'a password'`, `CREATE ROLE reader LOGIN PASSWORD 'a password'`,
		`CREATE SCHEMA standings AUTHORIZATION owner`,
		`GRANT CONNECT ON DATABASE "`+database.Path[1:]+`" TO owner, writer, reader`)
	owner := open(t, as(t, text, "owner"))
	require.NoError(t, owner.Migrate(t.Context()))
	executed(t, admin,
		`GRANT USAGE ON SCHEMA standings TO writer, reader`,
		`GRANT SELECT ON ALL TABLES IN SCHEMA standings TO writer, reader`,
		`GRANT INSERT, UPDATE, DELETE ON standings.windows, standings.standings, standings.members, standings.erasures TO writer`,
		`GRANT UPDATE ON standings.leader TO writer`)

	writer := open(t, as(t, text, "writer"))
	require.NoError(t, writer.Migrate(t.Context()), "there is nothing to do")
	archived(t, writer, first, backup(0, 1), ranked(1, 100))
	w := archived(t, writer, first, final(0), ranked(1, 100))
	_, err = writer.Sweep(t.Context(), first)
	require.NoError(t, err)
	erased, err := writer.Erase(t.Context(), first, "m1")
	require.NoError(t, err)
	require.Zero(t, erased)

	reader := open(t, as(t, text, "reader"))
	require.NoError(t, reader.Check(t.Context()))
	require.Equal(t, ranked(1, 100), all(t, reader, w.ID))
	require.NoError(t, reader.Verify(t.Context(), w.ID))
	_, err = reader.LargestToken(t.Context())
	require.NoError(t, err)
	require.ErrorContains(t, reader.Take(t.Context(), Fence{2, "reader"}), "permission denied for table leader")
	var n int
	require.NoError(t, reader.one(t.Context(), `SELECT count(*) FROM results`, nil, &n))
	require.Equal(t, 100, n)
}

func TestTLSIsByTheURL(t *testing.T) {
	server := testenv.LocalPostgres(t)
	text := server.Database(t)
	authority, another := harness.NewAuthority(t, "the archive's"), harness.NewAuthority(t, "another")
	identity := authority.Sign(t, "postgres", time.Now().Add(time.Hour), "127.0.0.1")
	server.UseTLS(identity.Cert, identity.Key)
	by := func(mode, root string) string {
		u, err := url.Parse(text)
		require.NoError(t, err)
		u.RawQuery = url.Values{"sslmode": {mode}, "sslrootcert": {root}}.Encode()
		return u.String()
	}
	require.Eventually(t, func() bool {
		s, err := Open(t.Context(), by("verify-full", authority.File))
		if err != nil {
			return false
		}
		defer func() { require.NoError(t, s.Close()) }()
		var used bool
		require.NoError(t, s.one(t.Context(), `SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()`, nil, &used))
		return used
	}, 10*time.Second, 20*time.Millisecond)
	_, err := Open(t.Context(), by("verify-full", another.File))
	require.ErrorContains(t, err, "certificate signed by unknown authority")
}
