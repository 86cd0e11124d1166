package ranking

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
)

const old, own = ledger.Fingerprint(0x5d1e), ledger.Fingerprint(0xa0b1)

// by makes the next piece one of a sweep with the given rules.
func (f *fixture) by(rules ledger.Fingerprint, text string) {
	f.piece.Expected = ledger.At(f.next)
	f.piece.Next = ledger.Position{From: f.next, To: f.next + 10, Hash: 0x8f3c, Rules: rules}
	f.piece.Note = &ledger.Note{Rules: rules, Text: text}
	f.piece.Groups = []ledger.Group{{Windows: []int{0}, Members: []ledger.Member{f.member("u1", 1)}}}
}

func (f *fixture) rules(t *testing.T) map[string]string {
	t.Helper()
	st, err := f.store.State(t.Context())
	require.NoError(t, err)
	return st.Rules
}

func TestATextOfRulesStaysAsLongAsItIsNeeded(t *testing.T) {
	f := fixed(t)
	forgets := func(keep ledger.Fingerprint, want int) {
		t.Helper()
		n, err := f.store.ForgetRules(t.Context(), keep)
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	forgets(own, 0)
	f.by(old, "old")
	require.Equal(t, ledger.Applied, f.apply(t).Outcome)
	forgets(own, 0) // the sweep uses it

	sweep := f.piece.Next
	require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Ledger(), "events/3", ledger.Torn(sweep)).Err())
	require.NoError(t, f.client.HDel(t.Context(), f.store.keys.Rules(), "events/3").Err())
	forgets(own, 0) // a torn sweep uses it too; a rebuild continues there
	require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Ledger(), "events/3", "10").Err())
	require.NoError(t, f.client.HSet(t.Context(), f.store.keys.Rules(), "events/3", old.String()).Err())
	forgets(own, 0) // the partition was counted by it, and another shard may be behind

	f.next = 10
	f.by(own, "own")
	require.Equal(t, ledger.Applied, f.apply(t).Outcome)
	forgets(own, 1)
	require.Equal(t, map[string]string{own.String(): "own", "events/3": own.String()}, f.rules(t))
	require.NoError(t, f.client.HDel(t.Context(), f.store.keys.Ledger(), "events/3").Err())
	forgets(own, 1) // for a partition that isn't in the ledger
	forgets(0, 1)
	require.Empty(t, f.rules(t))
}

func TestAShadowReadsTheRulesOfTheLiveBoardsAndKeepsNone(t *testing.T) {
	f := fixed(t)
	f.by(old, "old")
	require.Equal(t, ledger.Applied, f.apply(t).Outcome)
	want := f.rules(t)

	shadow := *f
	shadow.store = f.store.Shadow("id", time.Minute)
	begun, err := shadow.store.Begin(t.Context(), []ledger.StartPosition{{Partition: f.piece.Partition, At: ledger.At(0), Origin: &ledger.Origin{}}})
	require.NoError(t, err)
	require.Equal(t, ledger.Began, begun)
	shadow.by(own, "own")
	require.Equal(t, ledger.Applied, shadow.apply(t).Outcome)
	require.Equal(t, want, shadow.rules(t))
	require.Zero(t, f.client.Exists(t.Context(), shadow.store.keys.Rules()).Val())
}
