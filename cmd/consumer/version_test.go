package main

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// staticBinary is the program as an image has it.
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
	binary := staticBinary(t, "v1.2.3-test")
	t.Run("says which version it was stamped with", func(t *testing.T) {
		said, err := exec.CommandContext(t.Context(), binary, "--version").Output()
		require.NoError(t, err)
		require.Equal(t, "consumer version v1.2.3-test\n", string(said))
	})
	t.Run("asks no proxy for a consumer's health", func(t *testing.T) {
		check := exec.CommandContext(t.Context(), binary, "healthcheck")
		// By a name that isn't excepted from proxies, as localhost is.
		check.Env = []string{"HTTP_PROXY=http://" + answering(t, http.StatusOK), "STANDINGS_LISTEN=consumer.invalid:8080"}
		out, err := check.CombinedOutput()
		require.Error(t, err, "%s", out)
		require.Contains(t, string(out), "consumer.invalid")
	})
}

func TestAVersionThatNobodyStampedIsNotEmpty(t *testing.T) {
	version, revision := buildVersion()
	require.NotEmpty(t, version)
	require.NotEmpty(t, revision)
}
