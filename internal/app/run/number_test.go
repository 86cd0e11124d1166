package run

import (
	"testing"

	"github.com/standings/standings/internal/ranking/inventory"
	"github.com/stretchr/testify/require"
)

func TestOnlyAReshardThatCopiesTheseShardsPausesAConsumer(t *testing.T) {
	require.NoError(t, copying(nil, 3))
	require.EqualError(t, copying(&inventory.Reshard{Owner: "ops-1", From: 3, To: 4}, 3), "a reshard by ops-1 copies the boards from 3 to 4 shards")
	require.NoError(t, copying(&inventory.Reshard{From: 3, To: 3}, 3), "it removes what another reshard left")
	require.NoError(t, copying(&inventory.Reshard{From: 4, To: 3}, 3), "it has switched")
}
