package main

import (
	"cmp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/clitest"
)

// finalWindow returns a window that is final on every shard and expires as usual, or at a given time.
func finalWindow(t *testing.T, shards int, expires int64) (w *clitest.Standings, listings func() []string) {
	t.Helper()
	w = clitest.StandingsIn(t, shards, 0)
	w.Add(t, "global", clitest.Member("Kalobi", 5, ""), clitest.Member("Tanubo", 6, ""), clitest.Member("Ritiki", 7, ""))
	var keys []string
	for _, s := range w.Shards {
		keys = append(keys, s.Keys().Windows())
	}
	const name = "global:weekly:2100-W10"
	listings = func() (all []string) {
		for _, key := range keys {
			if text := w.Reader.Client.HGet(t.Context(), key, name).Val(); text != "" {
				all = append(all, text)
			}
		}
		return all
	}
	for _, key := range keys {
		if text := w.Reader.Client.HGet(t.Context(), key, name).Val(); text != "" {
			l, err := ranking.ParseListing(name, text)
			require.NoError(t, err)
			l.Expires, l.Final = cmp.Or(expires, l.Expires), 3
			require.NoError(t, w.Reader.Client.HSet(t.Context(), key, name, l.Text()).Err())
		}
	}
	return w, listings
}

func TestAFinalWindowIsReopenedWithAReason(t *testing.T) {
	for _, shards := range []int{1, 3} {
		w, listings := finalWindow(t, shards, 0)
		reopen := func(args string) (int, string, string) {
			return execute(t, append(w.Environ, "STANDINGS_SEAL=true"), append([]string{"reopen"}, strings.Fields(args)...)...)
		}
		for args, says := range map[string]string{
			"global weekly 2100-W10":                                      "--reason is required",
			"global weekly 2100-W10 --reason x --for -1s":                 "--for",
			"global weekly 2100-W10 --reason=" + strings.Repeat("x", 501): "has 501 bytes, at most 500 are possible",
			"global daily 2100-W10 --reason x":                            "period daily is not enabled",
			"global weekly W10 --reason x":                                "W10",
			"glo/bal weekly 2100-W10 --reason x":                          `"glo/bal"`,
			"global weekly --reason x":                                    "takes 3 arguments",
			"global weekly 2100-W10 --reason=a\u0001b --for 10m":          "control character",
		} {
			code, stdout, stderr := reopen(args)
			require.Equal(t, 2, code, "%s: %s", args, stderr)
			require.Contains(t, stderr, says)
			require.Empty(t, stdout)
		}
		for _, text := range listings() {
			require.Contains(t, text, `"final":3`)
		}

		args, want := "global weekly 2100-W10 --reason case-1234 --for 2h", `^global weekly 2100-W10, revision 3, is open again. It is sealed again, as revision 4, after `
		if shards > 1 {
			args, want = args+" --json", `^{\s*"board": "global",\s*"period": "weekly",\s*"window": "2100-W10",\s*"revision": 3,\s*"until": "[^"]*"\s*}\s*$`
		}
		code, stdout, stderr := reopen(args)
		require.Zero(t, code, stderr)
		require.Regexp(t, want, stdout)
		require.NotEmpty(t, listings())
		for _, text := range listings() {
			require.NotContains(t, text, `"final"`)
		}
		code, _, stderr = reopen("global weekly 2100-W10 --reason case-1234")
		require.Equal(t, 1, code)
		require.Contains(t, stderr, "global weekly 2100-W10 is not final: nothing was changed")
	}
}

// No event would count in it, and it would never be sealed again.
func TestAWindowWhoseRetentionIsOverIsNotReopened(t *testing.T) {
	w, listings := finalWindow(t, 3, 1_700_000_000_000)
	code, stdout, stderr := execute(t, w.Environ, "reopen", "global", "weekly", "2100-W10", "--reason", "case 1234")
	require.Equal(t, 1, code)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "the retention of global weekly 2100-W10 is over")
	require.NotEmpty(t, listings())
	for _, text := range listings() {
		require.Contains(t, text, `"final":3`)
	}
}
