package ranking

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/test/testenv"
)

func (f *fixture) view(t testing.TB) *View {
	t.Helper()
	v, err := NewView(t.Context(), f.client, f.prefix, of, 20*time.Second)
	require.NotNil(t, v)
	if _, none := errors.AsType[*SchemaError](err); !none && of == 1 { // with more shards, the other ones don't exist
		require.NoError(t, err)
	}
	return v
}

func TestADropRemovesAllUnderAPrefixAndNothingElse(t *testing.T) {
	f := someone(t)
	// A rebuild that was killed.
	require.NoError(t, f.client.Set(t.Context(), f.store.keys.Rebuild(), "{}", time.Minute).Err())
	require.NoError(t, f.client.ZAdd(t.Context(), f.store.keys.tag+"eu:weekly:lost", redisZ(1, "unlisted")).Err())
	alike := newFixture(t, f.client, f.prefix+"2")
	alike.begin(t)
	alike.add(t, alike.member("u1", 1))
	// Keys of other prefixes that begin alike, or that aren't keys of standings.
	for _, key := range []string{f.prefix, f.prefix + ":x", f.prefix + ":{x}:y", "x" + f.prefix + ":{0}:ledger"} {
		require.NoError(t, f.client.Set(t.Context(), key, "x", time.Minute).Err())
	}
	v := f.view(t)
	found, err := v.Survey(t.Context())
	require.NoError(t, err)
	require.True(t, found.Rebuilding)
	require.Equal(t, []string{"eu", "global"}, found.Boards)
	require.Equal(t, []int{4, 4, 8}, []int{found.Windows, int(found.Members), found.Keys}, "%v", found.keys)
	last := 0
	require.NoError(t, v.Drop(t.Context(), found, 0, func(done int) { last = done }))
	require.Equal(t, 8, last)
	left := contents(t, f.client, f.prefix)
	require.Contains(t, left, ":{x}:y")
	for key := range left {
		require.False(t, strings.HasPrefix(key, ":{0}:"), key)
	}
	alike.mustApply(t)
	require.Equal(t, int64(1), f.client.Exists(t.Context(), "x"+f.prefix+":{0}:ledger").Val())
	found, err = v.Survey(t.Context())
	require.NoError(t, err)
	require.Zero(t, found.Keys)
}

// After any interruption of a drop, no worker counts on top of the remains, and no reader shows them.
func TestWhatIsLeftOfADropIsNoBoardToAnybody(t *testing.T) {
	f := someone(t)
	found, err := f.view(t).Survey(t.Context())
	require.NoError(t, err)
	for stop := 1; stop < found.Keys; stop++ {
		f := someone(t)
		v := f.view(t)
		found, err := v.Survey(t.Context())
		require.NoError(t, err)
		found.keys = found.keys[:stop]
		require.NoError(t, v.Drop(t.Context(), found, 0, nil))
		f.answers(t, ledger.Answer{Outcome: ledger.Moved})
		f.unchanged(t, func() {
			begun, err := f.store.Begin(t.Context(), []ledger.StartPosition{beginning(3, "", 0, nil)})
			require.NoError(t, err)
			require.Equal(t, ledger.Orphaned, begun, "after %v", found.keys)
		})
		if stop > 1 {
			_, err = f.store.Top(t.Context(), "global", f.window(0), 0, 10)
			var none *SchemaError
			require.ErrorAs(t, err, &none)
		}
		// A second drop continues.
		v = f.view(t)
		found, err = v.Survey(t.Context())
		require.NoError(t, err)
		require.NoError(t, v.Drop(t.Context(), found, 0, nil))
		require.Empty(t, contents(t, f.client, f.prefix))
	}
}

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
		f.hasLine(t, "events/3", fmt.Sprintf(`{"owner":"host-1","state":"running","at":%q}`, at.Format(time.RFC3339Nano)))
	}
	report(time.Now().Add(-time.Minute))
	found, err := v.Survey(t.Context())
	require.NoError(t, err)
	require.Empty(t, found.Used)
	require.False(t, found.Rebuilding)
	moves, err := v.Moves(t.Context(), found)
	require.NoError(t, err)
	require.False(t, moves)
	f.mustApply(t)
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
	require.NoError(t, f.client.LPush(t.Context(), f.store.keys.tag+"a:weekly:b", "x").Err())
	require.NoError(t, f.client.ZAdd(t.Context(), f.store.keys.tag+"a:weekly:c", redis.Z{Member: "m"}).Err())
	v := f.view(t)
	found, err := v.Survey(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(1), found.Members)
	require.NoError(t, v.Drop(t.Context(), found, 0, nil))
	require.Empty(t, contents(t, f.client, f.prefix))
}
