package shadow

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ranking"
)

// What was read of a window before a swap isn't of the window that is there now: it may have been
// dropped meanwhile, and be back.
func TestASwapEndsASnapshotThatIsBeingRead(t *testing.T) {
	f, r := rebuilding(t)
	// Whoever reads it was paused before the rebuild took its lock, and goes on once that is over.
	lock, err := f.client.GetDel(t.Context(), r.live.Keys().Rebuild()).Result()
	require.NoError(t, err)
	sn, err := r.live.BeginSnapshot(t.Context(), time.Minute)
	require.NoError(t, err)
	f.text(t, r.live.Keys().Rebuild(), lock)
	f.held(t, r)
	_, err = sn.Look(t.Context())
	require.ErrorIs(t, err, ranking.ErrRebuilding)
	_, err = r.Swap(t.Context(), Choice{})
	require.NoError(t, err)
	require.NoError(t, r.Close(t.Context()))
	_, err = sn.Look(t.Context())
	require.ErrorIs(t, err, ranking.ErrSnapshotLost)
}
