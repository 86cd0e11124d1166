package memory

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// One MiB less than LeastMemory is too little.
func TestTheLeastMemoryIsTheLeast(t *testing.T) {
	fits := func(foldMemory, size int64) bool {
		return LargestBatch(foldMemory) >= size+besideEvent && turnOf(foldMemory) >= turnTakes(foldMemory, size, longestRecord(foldMemory, size))
	}
	for _, size := range []int64{1, 1 << 10, 1 << 20, 8 << 20, 64 << 20} {
		least := LeastMemory(size)
		t.Log(size, least>>20)
		require.True(t, fits(least, size), size)
		require.False(t, fits(least-1<<20, size), size)
		for more := least; more < 4*least; more += 1 << 20 {
			require.True(t, fits(more, size), "more is never worse")
		}
	}
}
