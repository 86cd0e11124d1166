package build

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAVersionThatNobodyStampedIsNotEmpty(t *testing.T) {
	version, revision := Version()
	require.NotEmpty(t, version)
	require.NotEmpty(t, revision)
}
