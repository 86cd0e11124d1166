package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/cmd/consumer/cli"
)

func TestWhatCannotBeServedIsSaidAtTheStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(path, []byte("shop s3cret\n"), 0o600))
	for _, c := range []struct {
		environ []string
		code    int
		says    string
	}{
		{nil, cli.ExitUsage, "api.listen is off"},
		{[]string{"STANDINGS_API_LISTEN=here"}, cli.ExitUsage, "api.listen"},
		{[]string{"STANDINGS_API_LISTEN=127.0.0.1:0", "STANDINGS_API_TOKENS_FILE=" + path}, cli.ExitFailure, "line 1: a token must have at least 16 characters"},
		{[]string{"STANDINGS_API_LISTEN=127.0.0.1:0", "STANDINGS_API_TOKENS_FILE=/nowhere/tokens"}, cli.ExitFailure, "/nowhere/tokens"},
		{[]string{"STANDINGS_API_LISTEN=127.0.0.1:0", "STANDINGS_API_ORIGINS=shop.example"}, cli.ExitUsage, "api.origins"},
	} {
		code, out, errs := execute(t, c.environ, "serve")
		require.Equal(t, c.code, code, "%v: %s", c.environ, errs)
		require.Contains(t, errs, c.says)
		require.Empty(t, out)
		require.NotContains(t, errs, "s3cret")
	}
}
