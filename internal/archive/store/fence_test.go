package store

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestALeaderIsFencedOnceAnotherHasWritten(t *testing.T) {
	onBothMigrated(t, func(t *testing.T, s *Store, url string) {
		token, err := s.LargestToken(t.Context())
		require.NoError(t, err)
		require.Zero(t, token)
		other := open(t, url)
		a, b := Fence{5, "a"}, Fence{6, "b"}
		begun, err := s.Begin(t.Context(), a, final(100))
		require.NoError(t, err)
		require.NoError(t, begun.Append(t.Context(), ranked(1, 10)))
		went, err := other.Begin(t.Context(), b, final(100))
		require.NoError(t, err)

		for name, call := range map[string]func() error{
			"append":  func() error { return begun.Append(t.Context(), ranked(11, 20)) },
			"discard": func() error { return begun.Discard(t.Context()) },
			"begin":   func() error { _, err := s.Begin(t.Context(), a, backup(1, 1)); return err },
			"sweep":   func() error { _, err := s.Sweep(t.Context(), a); return err },
			"take":    func() error { return s.Take(t.Context(), a) },
			// Redis went back, and has given b's token again.
			"same token":  func() error { return s.Take(t.Context(), Fence{6, "a"}) },
			"same append": func() error { begun.fence = Fence{6, "a"}; return begun.Append(t.Context(), ranked(11, 20)) },
		} {
			require.ErrorIs(t, call(), ErrFenced, name)
		}
		require.NoError(t, went.Append(t.Context(), ranked(11, 100)))
		begun.fence, begun.window = a, went.Window()
		require.ErrorIs(t, begun.Finish(t.Context()), ErrFenced)
		require.NoError(t, went.Finish(t.Context()))
		require.Equal(t, ranked(1, 100), all(t, s, went.Window().ID))

		token, err = s.LargestToken(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 6, token)
		require.NoError(t, s.Take(t.Context(), Fence{7, "a"}))
		require.ErrorIs(t, other.Take(t.Context(), b), ErrFenced)
		for _, f := range []Fence{{0, "a"}, {8, ""}} {
			require.ErrorIs(t, s.Take(t.Context(), f), ErrInvalid)
		}
	})
}
