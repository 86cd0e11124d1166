package testenv

import (
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func databaseOf(t *testing.T, text string) (name string, tables int) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), text)
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close(t.Context())) }()
	require.NoError(t, c.QueryRow(t.Context(), `SELECT current_database(), (SELECT count(*) FROM pg_tables WHERE schemaname = 'public')`).Scan(&name, &tables))
	_, err = c.Exec(t.Context(), `CREATE TABLE mine (id int)`)
	require.NoError(t, err)
	return name, tables
}

func TestEveryTestHasADatabaseOfItsOwn(t *testing.T) {
	first, tables := databaseOf(t, Postgres(t))
	require.Zero(t, tables)
	second, tables := databaseOf(t, Postgres(t))
	require.Zero(t, tables)
	require.NotEqual(t, first, second)
}

func TestAPostgresThatIsGivenIsUsed(t *testing.T) {
	server := LocalPostgres(t)
	t.Setenv(PostgresVariable, server.url.String())
	given, err := givenPostgres(t.Context())
	require.NoError(t, err)
	require.Equal(t, Given, given.source)
	require.Regexp(t, `^PostgreSQL \d+`, given.name)
	u, err := url.Parse(given.Database(t))
	require.NoError(t, err)
	require.Equal(t, server.Addr(), u.Host)

	password, _ := server.url.User.Password()
	for _, text := range []string{"postgres://u:" + password + "@127.0.0.1:1/x", "postgres://u:" + password + "@%zz"} {
		t.Setenv(PostgresVariable, text)
		_, err = givenPostgres(t.Context())
		require.Error(t, err)
		require.NotContains(t, err.Error(), password)
	}
	t.Setenv(PostgresVariable, "")
	_, err = givenPostgres(t.Context())
	require.ErrorIs(t, err, errNotHere)
}

func TestAPostgresThatWasKilledHasWhatWasCommitted(t *testing.T) {
	server := LocalPostgres(t)
	text := server.Database(t)
	name, _ := databaseOf(t, text)
	for _, kill := range []func(){server.Kill, server.KillAlone} {
		kill()
		_, err := pgx.Connect(t.Context(), text)
		require.Error(t, err)
		server.Start()
		c, err := pgx.Connect(t.Context(), text)
		require.NoError(t, err)
		var n int
		require.NoError(t, c.QueryRow(t.Context(), `SELECT count(*) FROM mine`).Scan(&n), name)
		require.NoError(t, c.Close(t.Context()))
	}
}
