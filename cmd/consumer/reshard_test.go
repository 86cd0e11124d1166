package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/test/clitest"
)

func TestAReshardThatCannotBeMeantIsRefusedFirst(t *testing.T) {
	t.Parallel()
	environ := []string{"STANDINGS_REDIS_ADDRESSES=" + clitest.ClosedPort(t)}
	for args, want := range map[string]string{
		"":                 "--to must be 1 to 256",
		"--to 257":         "--to must be 1 to 256",
		"--to -1":          "--to must be 1 to 256",
		"--to 3 --wait 0s": "--wait must be 1s to 1h",
		"--to 3 more":      "takes 0 arguments",
	} {
		code, stdout, stderr := execute(t, environ, append([]string{"reshard"}, strings.Fields(args)...)...)
		require.Equal(t, 2, code, stdout+stderr)
		require.Contains(t, stderr, want)
	}
	code, _, stderr := execute(t, environ, "reshard", "--to", "3")
	require.Equal(t, 1, code)
	require.Regexp(t, "Redis doesn't answer|connection refused", stderr)
}

func TestAReshardSaysWhatItIsAboutToDoAndWhatCameOfIt(t *testing.T) {
	t.Parallel()
	w := clitest.StandingsOf(t, 0)
	var members []ledger.Member
	for i := range 50 {
		members = append(members, clitest.Member(fmt.Sprint("m", i), 1, ""))
	}
	w.Add(t, "global", members...)
	w.Add(t, "eu", members[:1]...)
	environ := append(w.Environ, "STANDINGS_REDIS_ASSUME_NOEVICTION=true") // miniredis does not report its policy
	does := func(code int, out, err string, args ...string) string {
		t.Helper()
		is, stdout, stderr := execute(t, environ, append([]string{"reshard"}, args...)...)
		require.Equal(t, code, is, stdout+stderr)
		require.Regexp(t, out, stdout)
		require.Contains(t, stderr, err)
		return stdout
	}
	before := "51 standings in 2 windows, from 1 shard to 3. Ingestion pauses meanwhile, for about 1s.\n"
	does(0, "^Nothing was changed.\n$", before, "--to", "3", "--dry-run")
	does(1, "^$", "nothing to do: the prefix", "--to", "1")
	does(0, "^The boards are on 3 shards now: 51 standings in 2 windows, with the checksum [0-9a-f]{16} on both sides. Ingestion paused for .*\nSet redis.shards to 3. Until then ",
		before+"waiting for consumers to finish their batches\n", "--to", "3")
	does(1, "^$", "nothing to do: the prefix", "--to", "3")

	var said struct {
		From, To, Windows int
		Standings         int64
		Checksum          *string
		Removed           int64
	}
	require.NoError(t, json.Unmarshal([]byte(does(0, `"switched": true`, "51 standings in 2 windows, from 3 shards to 2.", "--to", "2", "--json")), &said))
	if said.From != 3 || said.To != 2 || said.Standings != 51 || said.Windows != 2 || said.Checksum == nil || said.Removed == 0 {
		t.Errorf("%+v", said)
	}
}

func TestAnUnfinishedSweepIsNamed(t *testing.T) {
	t.Parallel()
	w := clitest.StandingsIn(t, 2, 0)
	environ := append(w.Environ, "STANDINGS_REDIS_ASSUME_NOEVICTION=true")
	w.Reader.Client.HSet(t.Context(), w.Shards[1].Keys().Ledger(), "points/0", "0..9@00000000000000aa")
	code, stdout, stderr := execute(t, environ, "reshard", "--to", "3", "--wait", "1s")
	require.Equal(t, 1, code, stdout)
	require.Contains(t, stderr, "after 1s not all shards have the same events: points/0")
}
