package version

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/test/clitest"
)

func TestAVersionThatNobodyStampedIsNotEmpty(t *testing.T) {
	version, revision := Build()
	require.NotEmpty(t, version)
	require.NotEmpty(t, revision)
}

func TestTheJSONIsDocumented(t *testing.T) { clitest.Documented(t, "version", report{}) }
