package reshard

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/lua"
)

// A reshard is paused for longer than its lease, and another one takes its place. Whatever the first one
// does when it continues, the boards that are read stay.

// lapses makes all locks of reshards expire.
func (f *fixture) lapses(t *testing.T) {
	t.Helper()
	for key := range f.keys(t) {
		if len(ours(map[string]bool{key: true})) == 0 {
			require.NoError(t, f.client.Del(t.Context(), key).Err())
		}
	}
}

func (f *fixture) reshards(t *testing.T, to ledger.Shards) {
	t.Helper()
	_, err := f.job(t, to).Run(t.Context())
	require.NoError(t, err)
}

func TestOneThatIsPausedWhileItCopiesLeavesWhatAnotherHasSwitchedTo(t *testing.T) {
	for _, at := range []Step{Leveling, Copying, Comparing, Switching} {
		f := fixed(t, 2, codec.Readable)
		was := f.holds(t, 2)
		j := f.job(t, 3)
		paused := false
		j.Watch.Step = func(s Step) {
			if s == at && !paused {
				paused = true
				f.lapses(t)
				f.reshards(t, 3)
			}
		}
		result, err := j.Run(t.Context())
		require.True(t, paused)
		if at == Switching { // the other reshard has made the same switch
			require.True(t, result.Switched || err != nil)
		} else {
			require.Error(t, err, "%d", at)
		}
		require.EqualValues(t, 3, f.number(t))
		f.holds(t, 3).sameAs(t, was)
	}
}

func TestOneThatIsPausedBeforeItsFirstStepIsRefused(t *testing.T) {
	f := fixed(t, 2, codec.Readable)
	was := f.holds(t, 2)
	j := f.job(t, 3)
	r := &run{Job: j, from: j.View.Stores(), to: j.View.Sibling(3), result: &Result{}}
	require.NoError(t, r.prepare(t.Context()))
	var err error
	r.lease, err = take(t.Context(), j, r.from)
	require.NoError(t, err)
	defer r.lease.end()
	f.lapses(t)
	f.reshards(t, 3)
	require.ErrorIs(t, r.copied(t.Context()), ErrHeld)
	r.forget(t.Context())
	f.holds(t, 3).sameAs(t, was)

	// This one has read the marks before another reshard starts its copy.
	f = fixed(t, 2, codec.Readable)
	s := f.of(3).Shards()[0]
	j = f.job(t, 3)
	j.Watch.Step = func(step Step) {
		if step == Comparing {
			reply, err := s.Call(t.Context(), lua.Switch, []string{s.Keys().Copy(), s.Keys().Copy(), s.Keys().Schema()}, "", "late", 1000, "")
			require.NoError(t, err)
			require.Equal(t, "other", reply[0])
		}
	}
	_, err = j.Run(t.Context())
	require.NoError(t, err)
	reply, err := s.Call(t.Context(), lua.Switch, []string{s.Keys().Copy(), s.Keys().Copy(), s.Keys().Schema()}, "", "late", 1000, "")
	require.NoError(t, err)
	require.Equal(t, []any{"stands"}, reply)
}

// Other reshards have returned to the old number meanwhile.
func TestOneThatIsPausedBeforeItRemovesTheOldShardsLeavesThem(t *testing.T) {
	f := fixed(t, 2, codec.Readable)
	was := f.holds(t, 2)
	j := f.job(t, 3)
	r := &run{Job: j, from: j.View.Stores(), to: j.View.Sibling(3), result: &Result{}}
	require.NoError(t, r.prepare(t.Context()))
	var err error
	r.lease, err = take(t.Context(), j, r.from)
	require.NoError(t, err)
	defer r.lease.end()
	require.NoError(t, r.copied(t.Context()))
	require.NoError(t, r.switched(t.Context()))
	require.NoError(t, Keep(t.Context(), r.to))
	require.NoError(t, r.leftMarks(t.Context(), r.from))
	f.lapses(t)
	f.reshards(t, 2)
	require.ErrorIs(t, r.discardLeft(t.Context(), r.from), ErrHeld)
	require.ErrorIs(t, r.leftMarks(t.Context(), r.from), ErrHeld)
	require.EqualValues(t, 2, f.number(t))
	f.holds(t, 2).sameAs(t, was)
	st, err := f.of(2).Shards()[0].State(t.Context())
	require.NoError(t, err)
	require.Zero(t, ranking.LeftFor(st.Schema))
}
