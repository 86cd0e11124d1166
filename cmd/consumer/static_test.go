package main

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/test/testenv"
)

// staticBinary builds the program as for an image.
func staticBinary(t *testing.T, version string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "consumer")
	build := exec.CommandContext(t.Context(), "../../scripts/static", binary)
	build.Env = append(build.Environ(), "VERSION="+version)
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return binary
}

func TestTheStaticBinary(t *testing.T) {
	testenv.Slow(t)
	binary := staticBinary(t, "v1.2.3-test")
	t.Run("says which version it was stamped with", func(t *testing.T) {
		said, err := exec.CommandContext(t.Context(), binary, "--version").Output()
		require.NoError(t, err)
		require.Equal(t, "consumer version v1.2.3-test\n", string(said))
	})
	t.Run("and from what it was built, by what", func(t *testing.T) {
		said, err := exec.CommandContext(t.Context(), binary, "version").Output()
		require.NoError(t, err)
		require.Regexp(t, `^version   v1\.2\.3-test\nrevision  ([0-9a-f]{40}|unknown)\ngo        go1\.[0-9.]+\S*\n$`, string(said))
		said, err = exec.CommandContext(t.Context(), binary, "version", "--json").Output()
		require.NoError(t, err)
		require.Contains(t, string(said), `"version": "v1.2.3-test"`)
		require.Contains(t, string(said), `"go_version": "go1.`)
	})
	t.Run("has no demo", func(t *testing.T) {
		said, err := exec.CommandContext(t.Context(), binary, "demo").CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(said), `unknown command "demo"`)
	})
	t.Run("asks no proxy for a consumer's health", func(t *testing.T) {
		check := exec.CommandContext(t.Context(), binary, "healthcheck")
		proxy := httptest.NewServer(http.NotFoundHandler())
		defer proxy.Close()
		// Proxies are not used for localhost, so this uses another name.
		check.Env = []string{"HTTP_PROXY=" + proxy.URL, "STANDINGS_LISTEN=consumer.invalid:8080"}
		out, err := check.CombinedOutput()
		require.Error(t, err, "%s", out)
		require.Contains(t, string(out), "consumer.invalid")
	})
}
