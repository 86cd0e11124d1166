package reshard

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Of two records the one is kept that the next seal has to know of, in whichever order they come.
func TestTheLaterOfTwoRecordsOfASealIsKept(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"", "1 7", "1 7"},
		{"1 7", "1 7", "1 7"},
		{"1 9", "2 7", "2 7"},
		{"1 7", "1 10", "1 10"},
		{"9 7", "10 7", "10 7"},
		{"2 7 after why", "2 7 reopened 8 why", "2 7 reopened 8 why"},
		{"2 7 reopened 8 why", "2 7 reopened 9 a", "2 7 reopened 9 a"},
		{"damaged", "1 7", "1 7"},
		// What passed by, of the one by its own ledgers, is of the same events if they are the same.
		{"2 7 3-4", "2 7 3-4", "2 7 3-4"},
		{"2 7 3-4", "2 7 3-4 reopened 8 why", "2 7 3-4 reopened 8 why"},
		{"2 7 after why", "2 7 3-4 reopened 8 me", "2 7 0-4 reopened 8 me"},
		{"2 7 3-4", "2 8 3-5", "2 8 0-5"},
		{"2 7 3-4", "2 8 after why", "2 8 0-4 after why"},
	} {
		require.Equal(t, c.want, laterSeal(c.a, c.b), "%q and %q", c.a, c.b)
		require.Equal(t, c.want, laterSeal(c.b, c.a), "%q and %q", c.b, c.a)
	}
}
