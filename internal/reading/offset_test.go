package reading

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// After a wait for a record, another server may answer that does not have the record yet.
func TestARecordIsReachedWhereWhatWasReadCountsIt(t *testing.T) {
	var v View
	v.Beside.Ledger = map[string]string{"points/0": "50", "points/1": "50..90@8f3c000000000000"}
	for text, reached := range map[string]bool{
		"points/0@49": true, "points/0@50": false, "points/1@49": true, "points/1@60": false, "points/2@0": false,
	} {
		o, err := ParseOffset(text)
		require.NoError(t, err)
		require.Equal(t, reached, v.Reached([]Offset{o}), text)
	}
	require.True(t, v.Reached(nil))
}
