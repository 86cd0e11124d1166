package ledger

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func positions() *rapid.Generator[Position] {
	offset := rapid.OneOf(rapid.Int64Range(0, 1000), rapid.Int64Range(0, math.MaxInt64))
	return rapid.Custom(func(t *rapid.T) Position {
		from := offset.Draw(t, "from")
		if rapid.Bool().Draw(t, "whole") || from == math.MaxInt64 {
			return At(from)
		}
		hash := rapid.OneOf(rapid.Uint64Range(1, 16), rapid.Uint64Range(1, math.MaxUint64)).Draw(t, "hash")
		rules := Fingerprint(rapid.OneOf(rapid.Uint64Range(0, 2), rapid.Uint64()).Draw(t, "rules"))
		return Position{From: from, To: rapid.Int64Range(from+1, math.MaxInt64).Draw(t, "to"), Hash: hash, Rules: rules}
	})
}

func TestAPositionComesBackFromItsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := positions().Draw(t, "p")
		q, err := Parse(p.String())
		require.NoError(t, err)
		require.Equal(t, p, q)
	})
}

func TestPositionsAreEqualAsTheirTextsAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, q := positions().Draw(t, "p"), positions().Draw(t, "q")
		require.Equal(t, p == q, p.String() == q.String())
	})
}

func TestPositionsReadAsTheDesignWritesThem(t *testing.T) {
	require.Equal(t, "480", At(480).String())
	require.False(t, At(480).Sweeping())
	sweep := Position{From: 120, To: 480, Hash: 0x8f3c}
	require.Equal(t, "120..480@0000000000008f3c", sweep.String())
	require.True(t, sweep.Sweeping())
	require.Equal(t, "torn:120..480@0000000000008f3c", Torn(sweep))
	require.Equal(t, "at 480", string(At(480).Append([]byte("at "))))
	sweep.Rules = 0x5d1e00000000a0b1
	require.Equal(t, "120..480@0000000000008f3c#5d1e00000000a0b1", sweep.String())
	require.Equal(t, "torn:120..480@0000000000008f3c#5d1e00000000a0b1", Torn(sweep))
	counted, err := Counted(Torn(sweep))
	require.NoError(t, err)
	require.Equal(t, sweep, counted)
}

func TestOnlyTheCanonicalTextIsAPosition(t *testing.T) {
	for _, text := range []string{
		"", " ", "x", "-1", "+1", "-0", "01", "1 ", " 1", "1\n", "9223372036854775808", "1e3", "0x10", "1_000",
		"1..", "1..2", "1..2@", "..2@0000000000000001", "1..@0000000000000001",
		"1..2@1", "1..2@000000000000000A", "1..2@00000000000000001", "1..2@000000000000000g", "1..2@-000000000000001",
		"2..1@0000000000000001", "2..2@0000000000000001", "-2..1@0000000000000001", "1..2@0000000000000000",
		"1..02@0000000000000001", "01..2@0000000000000001", "1..2..3@0000000000000001", "1..2@0000000000000001@", "1...2@0000000000000001",
		"1#0000000000000001", "1..2#0000000000000001", "1..2@0000000000000001#", "1..2@0000000000000001#1", "1..2@0000000000000001#0000000000000000",
		"1..2@0000000000000001#000000000000000A", "1..2@0000000000000001#0000000000000001#", "1..2@0000000000000001#0000000000000001#0000000000000001",
		"1..2@0000000000000001#00000000000000001", "1..2#0000000000000001@0000000000000001", "1..2@0000000000000001# 000000000000001",
	} {
		p, err := Parse(text)
		require.Error(t, err, "%q", text)
		require.Zero(t, p)
		require.Contains(t, err.Error(), fmt.Sprintf("position %q", text), "an error names what was read")
	}
}

func TestATornLedgerIsToldFromAnUnreadableOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, err := Parse(Torn(positions().Draw(t, "p")))
		require.ErrorIs(t, err, ErrTorn)
	})
	_, err := Parse("x")
	require.NotErrorIs(t, err, ErrTorn)
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"0", "480", "120..480@8f3c000000000001", "torn:5", "1..2@1", "-1", "9223372036854775807", "0..9223372036854775807@ffffffffffffffff", "120..480@8f3c000000000001#5d1e000000000001", "1#5d1e000000000001"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			require.Zero(t, p)
			return
		}
		require.Equal(t, text, p.String())
		require.GreaterOrEqual(t, p.From, int64(0))
		require.GreaterOrEqual(t, p.To, p.From)
		require.Equal(t, p.Sweeping(), strings.Contains(text, ".."))
		require.Equal(t, p.Sweeping(), p.Hash != 0)
		require.Equal(t, p.Rules != 0, strings.Contains(text, "#"))
	})
}
