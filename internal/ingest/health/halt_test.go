package health

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger/workers"
)

// A new reason must be listed, so that it is shown.
func TestEveryReasonOfAHaltIsListed(t *testing.T) {
	source, err := os.ReadFile("halt.go")
	require.NoError(t, err)
	declared := []string{workers.HaltTorn}
	for _, m := range regexp.MustCompile(`(?m)^\tHalt\w+ += "(\w+)"`).FindAllSubmatch(source, -1) {
		declared = append(declared, string(m[1]))
	}
	require.NotEmpty(t, declared)
	require.ElementsMatch(t, declared, HaltReasons())
}
