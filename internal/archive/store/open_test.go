package store

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/test/testenv"
)

func TestAnArchiveThatCannotBeOpenedSaysWhy(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	require.NoError(t, os.WriteFile(text, []byte("no database, but more than a hundred bytes of something else, which is what SQLite looks at first of all."), 0o600))
	for given, says := range map[string]string{
		"":                                   "begins with neither sqlite: nor postgres://",
		"mysql://x":                          "begins with neither sqlite: nor postgres://",
		"sqlite:":                            "names no file",
		"sqlite::memory:":                    "names no file",
		"sqlite:x?mode=ro":                   "names no file",
		"sqlite://var/x":                     "has a host",
		"sqlite:" + dir:                      "it is a directory",
		"sqlite:" + dir + "/none/x":          "its directory: stat " + dir + "/none: no such file or directory",
		"sqlite:" + text + "/x":              "text is no directory",
		"sqlite:" + text:                     "file is not a database",
		"postgres://127.0.0.1:1/x":           "connection refused",
		"postgres://127.0.0.1:x/x":           "can't be read",
		"postgres://127.0.0.1/x?sslmode=any": "sslmode is invalid",
	} {
		_, err := Open(t.Context(), given)
		require.ErrorContains(t, err, says, given)
	}
}

func TestAPasswordIsInNoError(t *testing.T) {
	const password = "se%cr/et"
	raw := url.QueryEscape(password)
	for _, given := range []string{
		"postgres://me:" + raw + "@127.0.0.1:1/x",
		"postgres://me:" + raw + "@127.0.0.1:1/x?sslmode=any",
		"postgres://me:" + raw + "@127.0.0.1:x/x",
		"postgres://me:" + password + "@127.0.0.1/x",
		"postgres://127.0.0.1:1/x?password=" + raw,
		"postgres://127.0.0.1:1/x?sslmode=any&password=" + raw,
		"postgres://127.0.0.1:1/x?sslmode=any&sslpassword=" + raw,
		"postgres://me@127.0.0.1:1/x?password=" + raw + "%zz",
		"mysql://me:" + raw + "@127.0.0.1/x",
	} {
		_, err := Open(t.Context(), given)
		require.Error(t, err)
		for _, secret := range []string{password, raw, url.PathEscape(password)} {
			require.NotContains(t, err.Error(), secret, given)
		}
	}
	u, err := url.Parse(testenv.Postgres(t))
	require.NoError(t, err)
	secret, _ := u.User.Password()
	s := open(t, u.String())
	require.NotContains(t, s.Name(), secret)
	require.ErrorContains(t, s.Take(t.Context(), first), s.Name())
	u.User = url.UserPassword("nobody-here", secret)
	_, err = Open(t.Context(), u.String())
	require.ErrorContains(t, err, "nobody-here")
	require.NotContains(t, err.Error(), secret)
}

func TestAPathMayHaveAnyCharacter(t *testing.T) {
	for _, name := range []string{"a b.db", "100%.db", "a#b.db", "ü.db", "a&b=c.db", "%41.db"} {
		path := filepath.Join(t.TempDir(), name)
		s := open(t, "sqlite:"+path)
		require.NoError(t, s.Migrate(t.Context()))
		require.FileExists(t, path)
		files, err := os.ReadDir(filepath.Dir(path))
		require.NoError(t, err)
		require.Greater(t, len(files), 1, "SQLite's own beside it")
		for _, file := range files {
			info, err := file.Info()
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "others may read %s", file.Name())
		}
	}
	t.Chdir(t.TempDir())
	require.NoError(t, open(t, "sqlite:archive.db").Migrate(t.Context()))
	require.FileExists(t, "archive.db")
	require.NoError(t, open(t, "sqlite://"+t.TempDir()+"/archive.db").Migrate(t.Context()))
}

func TestMembersNeedADatabaseOfUTF8(t *testing.T) {
	u, err := url.Parse(testenv.Postgres(t))
	require.NoError(t, err)
	s := open(t, u.String())
	name := u.Path[1:] + "_latin"
	_, err = s.write.ExecContext(t.Context(), `CREATE DATABASE "`+name+`" ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := s.write.Exec(`DROP DATABASE "` + name + `" WITH (FORCE)`)
		require.NoError(t, err)
	})
	u.Path = "/" + name
	_, err = Open(t.Context(), u.String())
	require.ErrorContains(t, err, "its encoding is LATIN1, and members' ids need UTF8")
}
