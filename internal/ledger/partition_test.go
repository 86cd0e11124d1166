package ledger

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func partitions() *rapid.Generator[Partition] {
	return rapid.Custom(func(t *rapid.T) Partition {
		return Partition{rapid.StringN(1, 20, -1).Draw(t, "topic"), rapid.IntRange(0, 1<<31-1).Draw(t, "number")}
	})
}

func TestAPartitionComesBackFromItsField(t *testing.T) {
	require.Equal(t, "events/3", Partition{"events", 3}.String())
	rapid.Check(t, func(t *rapid.T) {
		p := partitions().Draw(t, "p")
		got, err := ParsePartition(p.String())
		require.NoError(t, err)
		require.Equal(t, p, got)
	})
	for _, field := range []string{"", "/", "events", "events/", "/3", "events/x", "events/-1", "events/+1", "events/03", "events/3 "} {
		_, err := ParsePartition(field)
		require.ErrorContains(t, err, "no field of a ledger", "%q", field)
	}
}

func TestPartitionsAreOrderedByTopicThenNumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, q := partitions().Draw(t, "p"), partitions().Draw(t, "q")
		require.Equal(t, p == q, p.Compare(q) == 0)
		require.Equal(t, p.Compare(q), -q.Compare(p))
	})
	fields := []string{"points/10", "eu/1", "points/2", "other", "eu/0"}
	slices.SortFunc(fields, CompareFields)
	require.Equal(t, []string{"other", "eu/0", "eu/1", "points/2", "points/10"}, fields)
}
