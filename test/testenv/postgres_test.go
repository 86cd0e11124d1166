package testenv

import (
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

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
	for _, statement := range []string{`CREATE TABLE mine (id int)`, `INSERT INTO mine VALUES (1)`} {
		c, err := pgx.Connect(t.Context(), text)
		require.NoError(t, err)
		_, err = c.Exec(t.Context(), statement)
		require.NoError(t, err)
		require.NoError(t, c.Close(t.Context()))
		server.Kill()
		_, err = pgx.Connect(t.Context(), text)
		require.Error(t, err)
		server.Start()
	}
}
