package shadow

// All keys of a rebuild have one lease.

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking/rankingtest"
	"github.com/standings/standings/test/testenv"
)

// own returns the keys of rebuilds with their time to live, ms.
func (f *fixture) own(t testing.TB) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	for key := range rankingtest.Contents(t, f.Client, f.Prefix) {
		if strings.Contains(key, "~") {
			all[key] = f.Client.PTTL(t.Context(), f.Prefix+key).Val().Milliseconds()
		}
	}
	return all
}

// If Redis's clock goes back, a piece writes keys that expire before the existing ones. If the ledger
// outlived the listing, the shadow would appear to have no windows, and the swap would accept that.
func TestTheLedgerExpiresNoLaterThanTheListing(t *testing.T) {
	f := someone(t)
	r, err := Lock(t.Context(), f.Store, "me", lease)
	require.NoError(t, err)
	f.fold(t, r, ledger.Origin{})
	k := r.shadow.Keys()
	beforeTheClockWentBack := func() {
		for _, key := range []string{k.Ledger(), k.Schema(), k.Origin()} {
			require.NoError(t, f.Client.PExpire(t.Context(), key, 10*lease).Err())
		}
	}
	// noLater requires that a key doesn't outlive another. The other one is read first: time passes in between.
	noLater := func(left func(key string) time.Duration, key, other string) {
		t.Helper()
		limit := left(other)
		require.LessOrEqual(t, left(key), limit+10*time.Millisecond, "each is rounded to 1 ms")
	}
	left := func(key string) time.Duration { return f.Client.PTTL(t.Context(), key).Val() }
	beforeTheClockWentBack()
	p := f.NewPiece()
	p.Groups = []ledger.Group{{Windows: []int{0, 1, 2}, Members: []ledger.Member{f.Member("u1", 7)}}}
	a, _, err := r.Shadow().Apply(t.Context(), &p)
	require.NoError(t, err)
	require.Equal(t, ledger.Answer{Outcome: ledger.Applied}, a)
	const rounding = 10 * time.Millisecond
	noLater(left, k.Ledger(), k.Windows())
	require.LessOrEqual(t, left(k.Windows()), lease+rounding)
	require.NoError(t, f.Client.PExpire(t.Context(), k.Windows(), 10*lease).Err())
	beforeTheClockWentBack()
	require.NoError(t, r.Renew(t.Context()))
	noLater(left, k.Ledger(), k.Windows()) // a renewal gives both the same time
}

func TestARebuildThatHasLostAnythingIsTold(t *testing.T) {
	for name, lose := range map[string]func(f *fixture, r *Rebuild) string{
		"its lock":           func(_ *fixture, r *Rebuild) string { return r.live.Keys().Rebuild() },
		"its ledger":         func(_ *fixture, r *Rebuild) string { return r.shadow.Keys().Ledger() },
		"its schema":         func(_ *fixture, r *Rebuild) string { return r.shadow.Keys().Schema() },
		"its origins":        func(_ *fixture, r *Rebuild) string { return r.shadow.Keys().Origin() },
		"one of its windows": func(f *fixture, r *Rebuild) string { return r.shadow.Keys().Window(&f.Piece.Windows[1]) },
	} {
		t.Run(name, func(t *testing.T) {
			f, r := rebuilding(t)
			require.NoError(t, r.Renew(t.Context()))
			f.Del(t, lose(f, r))
			for key := range f.own(t) {
				require.NoError(t, f.Client.PExpire(t.Context(), f.Prefix+key, 20*time.Second).Err())
			}
			require.ErrorIs(t, r.Renew(t.Context()), ErrLost)
			for key, left := range f.own(t) {
				require.LessOrEqual(t, left, (20 * time.Second).Milliseconds(), "nothing is renewed: %s", key)
			}
			if name == "its lock" {
				require.ErrorIs(t, r.Hold(t.Context(), lease), ErrLost)
			}
		})
	}
}

// A rebuild is paused until its lease is over, and continues. All its keys are gone, and it changes
// nothing, although it does not know that.
func TestARebuildThatWakesUpAfterItsLeaseDoesNotSwap(t *testing.T) {
	f := someone(t)
	before := rankingtest.Contents(t, f.Client, f.Prefix)
	r, err := Lock(t.Context(), f.Store, "me", lease)
	require.NoError(t, err)
	f.fold(t, r, ledger.Origin{}, f.Member("u1", 7))
	require.NoError(t, r.Renew(t.Context()))
	require.NoError(t, r.Hold(t.Context(), lease))
	// All keys have a lease, and the test shortens it here. A short lease from the start could end before
	// the hold is taken.
	own := f.own(t)
	own[strings.TrimPrefix(r.live.Keys().Hold(), f.Prefix)] = f.Client.PTTL(t.Context(), r.live.Keys().Hold()).Val().Milliseconds()
	require.Len(t, own, 1+4+3+1)
	for key, left := range own {
		require.Positive(t, left, key)
		require.NoError(t, f.Client.PExpire(t.Context(), f.Prefix+key, 100*time.Millisecond).Err())
	}
	require.Eventually(t, func() bool {
		return len(f.own(t)) == 0 && f.Client.Exists(t.Context(), f.Store.Keys().Hold()).Val() == 0
	},
		10*time.Second, 20*time.Millisecond, "all of it expires")
	require.Equal(t, before, rankingtest.Contents(t, f.Client, f.Prefix))
	f.Unchanged(t, func() {
		require.ErrorIs(t, r.Renew(t.Context()), ErrLost)
		require.ErrorIs(t, r.Hold(t.Context(), lease), ErrLost)
		_, err := r.Swap(t.Context(), Choice{})
		require.ErrorIs(t, err, ErrLost)
		p := f.NewPiece()
		p.Expected, p.Next = ledger.At(10), ledger.At(20)
		a, _, err := r.Shadow().Apply(t.Context(), &p)
		require.NoError(t, err)
		require.Equal(t, ledger.Answer{Outcome: ledger.Moved}, a, "nor does a piece that was on its way begin it anew")
	})
	f.MustApply(t)
	second := f.rebuild(t, f.Member("u1", 7))
	require.ErrorIs(t, r.Hold(t.Context(), lease), ErrLost, "another's lock isn't taken for its own")
	f.held(t, second)
	_, err = r.Swap(t.Context(), Choice{})
	require.Error(t, err)
	_, err = second.Swap(t.Context(), Choice{})
	require.NoError(t, err)
}

func TestAHoldLapsesByItselfAndIsReleasedByItsOwnerOnly(t *testing.T) {
	f, r := rebuilding(t)
	require.NoError(t, r.Hold(t.Context(), lease))
	require.NoError(t, r.Hold(t.Context(), lease), "once more: the answer may have been lost")
	f.Piece.Expected, f.Piece.Next = ledger.At(f.Next), ledger.At(f.Next+10)
	f.Answers(t, ledger.Answer{Outcome: ledger.Held})
	require.NoError(t, r.Release(t.Context()))
	f.text(t, f.Store.Keys().Hold(), "another's")
	require.ErrorIs(t, r.Hold(t.Context(), lease), ErrUnheld)
	require.NoError(t, r.Release(t.Context()))
	f.Answers(t, ledger.Answer{Outcome: ledger.Held})
	f.Del(t, f.Store.Keys().Hold())
	require.NoError(t, r.Hold(t.Context(), 100*time.Millisecond))
	require.Eventually(t, func() bool { return f.Apply(t).Outcome == ledger.Applied }, 10*time.Second, 10*time.Millisecond)
}

// A shadow without origins would not tell which events it has.
func TestAShadowHasAnOriginOfEveryPartition(t *testing.T) {
	f := someone(t)
	r, err := Lock(t.Context(), f.Store, "me", lease)
	require.NoError(t, err)
	_, err = r.Shadow().Begin(t.Context(), []ledger.StartPosition{beginning(0, "", 0, nil)})
	require.ErrorContains(t, err, "no origin is given")
	require.Equal(t, ledger.Halt, Classify(err))
}

// sized records the largest number of arguments of a call.
type sized struct{ most *int }

func (sized) DialHook(next redis.DialHook) redis.DialHook { return next }
func (s sized) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		*s.most = max(*s.most, len(cmd.Args()))
		return next(ctx, cmd)
	}
}
func (sized) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func TestALeaseIsRenewedInSmallCallsHoweverManyWindowsThereAre(t *testing.T) {
	testenv.SlowEmbedded(t)
	f, r := rebuilding(t)
	pipe := f.Client.Pipeline()
	const windows = 1200 // three pages
	for i := range windows {
		name := fmt.Sprintf("b%d:weekly:2026-W47", i)
		pipe.HSet(t.Context(), r.shadow.Keys().Windows(), name, `{"end":2,"expires":9999999999999,"start":1}`)
		pipe.ZAdd(t.Context(), r.shadow.Keys().Listed(name), redis.Z{Score: 1, Member: "u"})
		pipe.PExpire(t.Context(), r.shadow.Keys().Listed(name), 20*time.Second)
		if i%100 == 99 { // the client's deadline covers a whole pipeline, and Redis may be busy
			_, err := pipe.Exec(t.Context())
			require.NoError(t, err)
		}
	}
	most := 0
	f.Client.AddHook(sized{&most})
	began := time.Now()
	require.NoError(t, r.Renew(t.Context()))
	require.Positive(t, most)
	require.Less(t, most, windows/2, "arguments of a call")
	all := f.own(t)
	for key, left := range all { // read some time after the renewal
		const rounding = 10 * time.Millisecond // Redis's clock and the time to live are each rounded to 1 ms
		require.GreaterOrEqual(t, left, (lease - time.Since(began) - rounding).Milliseconds(), key)
	}
	require.Greater(t, len(all), windows)
}

// A renewal during a removal must not report the shadow as lost, which would end the rebuild.
func TestALeaseIsRenewedWhileTheShadowIsRemoved(t *testing.T) {
	f := someone(t)
	r := f.rebuild(t, f.Member("u1", 10))
	require.NoError(t, r.Renew(t.Context()))
	require.NoError(t, r.remove(t.Context(), 0))
	require.NoError(t, r.Renew(t.Context()))
	require.Positive(t, f.Client.PTTL(t.Context(), f.Store.Keys().Rebuild()).Val())
}
