package inventory

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ranking/rankingtest"
	"github.com/standings/standings/test/testenv"
)

func TestADropThatIsStoppedSaysHowFarItCame(t *testing.T) {
	f := someone(t)
	found, err := f.view(t).Survey(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	err = f.view(t).Drop(ctx, found, time.Hour, func(int) { cancel() })
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, fmt.Sprintf("1 of %d keys are gone", found.Keys))
}

func TestAPrefixInUseIsSeen(t *testing.T) {
	f := someone(t)
	v := f.view(t)
	report := func(at time.Time) {
		line := fmt.Sprintf(`{"owner":"host-1","state":"running","at":%q}`, at.Format(time.RFC3339Nano))
		require.NoError(t, f.Client.HSet(t.Context(), f.Store.Keys().Workers(), "events/3", line).Err())
	}
	report(time.Now().Add(-time.Minute))
	found, err := v.Survey(t.Context())
	require.NoError(t, err)
	require.Empty(t, found.Used)
	require.False(t, found.Rebuilding)
	moves, err := v.Moves(t.Context(), found)
	require.NoError(t, err)
	require.False(t, moves)
	f.MustApply(t)
	moves, err = v.Moves(t.Context(), found)
	require.NoError(t, err)
	require.True(t, moves)
	found, err = v.Survey(t.Context())
	require.NoError(t, err)
	report(time.Now().Add(-time.Hour)) // the worker's own clock is wrong
	moves, err = v.Moves(t.Context(), found)
	require.NoError(t, err)
	require.True(t, moves, "idle, and alive")
	report(time.Now().Add(-20 * time.Second))
	found, err = v.Survey(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]string{"events/3": "host-1"}, found.Used)
}

func TestADropGoesOnAfterAKeyOfAnotherKind(t *testing.T) {
	f := newFixture(t, testenv.RedisClient(t), testenv.Prefix(t))
	require.NoError(t, f.Client.LPush(t.Context(), f.Store.Keys().Listed("")+"a:weekly:b", "x").Err())
	require.NoError(t, f.Client.ZAdd(t.Context(), f.Store.Keys().Listed("")+"a:weekly:c", redis.Z{Member: "m"}).Err())
	v := f.view(t)
	found, err := v.Survey(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(1), found.Members)
	require.NoError(t, v.Drop(t.Context(), found, 0, nil))
	require.Empty(t, rankingtest.Contents(t, f.Client, f.Prefix))
}
