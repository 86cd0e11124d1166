package main

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheStaticBinarySaysWhichVersionItWasStampedWith(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "consumer")
	build := exec.CommandContext(t.Context(), "../../scripts/static", binary)
	build.Env = append(build.Environ(), "VERSION=v1.2.3-test")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	said, err := exec.CommandContext(t.Context(), binary, "--version").Output()
	require.NoError(t, err)
	require.Equal(t, "consumer version v1.2.3-test\n", string(said))
}

func TestAVersionThatNobodyStampedIsNotEmpty(t *testing.T) {
	version, revision := buildVersion()
	require.NotEmpty(t, version)
	require.NotEmpty(t, revision)
}
