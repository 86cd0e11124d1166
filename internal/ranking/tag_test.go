package ranking

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
)

func TestTagsAreSpreadEvenlyOverTheSlots(t *testing.T) {
	for _, n := range []ledger.Shards{2, 3, 5, 12, 64, 100, ledger.MaxShards} {
		for i := range int(n) {
			tag := Tag(i, n)
			require.True(t, strings.HasPrefix(tag, fmt.Sprintf("%d.", i)), tag)
			at := slotOf(tag)
			require.GreaterOrEqual(t, at*int(n), i*slots, "%s of %d shards", tag, n)
			require.Less(t, at*int(n), (i+1)*slots, "%s of %d shards", tag, n)
		}
	}
}

// The slots that CLUSTER KEYSLOT of Redis 7.0 returns.
func TestASlotIsTheOneThatRedisHas(t *testing.T) {
	require.Equal(t, 12739, slotOf("123456789"))
	require.Equal(t, 12182, slotOf("foo"))
	require.Equal(t, 5061, slotOf("bar"))
}

func TestTheKeysOfOneShardAreThoseWithoutANumber(t *testing.T) {
	require.Equal(t, "lb:{0}:ledger", KeysOf("lb", 0, 1).Ledger())
	require.Equal(t, "lb:{"+Tag(2, 5)+"}:5:ledger", KeysOf("lb", 2, 5).Ledger())
}
