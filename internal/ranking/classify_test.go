package ranking

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/redisconn"
)

func TestOurOwnRefusalsHalt(t *testing.T) {
	for _, err := range []error{&SchemaError{}, Faultf("a bug")} {
		require.Equal(t, ledger.Halt, Classify(fmt.Errorf("start: %w", err)))
		require.Equal(t, ledger.Refuse, Classify(fmt.Errorf("start: %w", err)).AtStart())
		require.False(t, redisconn.Unreachable(err))
	}
}
