package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/bans"
	"github.com/standings/standings/internal/bans/hiding"
	"github.com/standings/standings/test/clitest"
)

func TestACommandThatCantBeCarriedOutTriesNothing(t *testing.T) {
	named := []string{"STANDINGS_KAFKA_BANS_TOPIC=bans", "STANDINGS_KAFKA_BROKERS=127.0.0.1:1"}
	for name, c := range map[string]struct {
		environ []string
		args    []string
		want    string
	}{
		"no topic":         {nil, []string{"u1", "--reason", "x"}, "kafka.bans_topic is not set"},
		"the source":       {[]string{"STANDINGS_KAFKA_BANS_TOPIC=points"}, []string{"u1", "--reason", "x"}, "must not be one of kafka.topics"},
		"its dead letters": {[]string{"STANDINGS_KAFKA_BANS_TOPIC=points.dlq"}, []string{"u1", "--reason", "x"}, "dead-letter topic of points"},
		"no board's name":  {named, []string{"u1", "--reason", "x", "--board", "e u"}, "is not a board name"},
		"no member":        {named, []string{"", "--reason", "x"}, "1 to 256 bytes"},
	} {
		code, stdout, stderr := execute(t, c.environ, append([]string{"ban"}, c.args...)...)
		if code != cli.ExitUsage || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: code %d, want %q: %s%s", name, code, c.want, stdout, stderr)
		}
	}
}

// The test does in Redis what a consumer would do.
func TestWhatIsRecordedIsReported(t *testing.T) {
	w := clitest.StandingsOf(t, 0)
	_, environ := clitest.FakeKafka(t)
	environ = append(append(environ, w.Environ...), "STANDINGS_KAFKA_BANS_TOPIC=bans")
	inRedis := hiding.In(boardsOf(t, w.Environ))
	writes := func(want string, args ...string) {
		t.Helper()
		if code, stdout, stderr := execute(t, environ, args...); code != cli.ExitOK || stdout != want {
			t.Errorf("%q: code %d: %s%swant %s", args, code, stdout, stderr, want)
		}
	}
	eu := bans.Key{Board: "eu", Member: "u\x1b1"}
	require.NoError(t, inRedis.Ban(t.Context(), bans.Ban{Key: eu}))
	writes("u\\x1b1 is banned on board eu until 2100-12-01T00:00:00.000Z.\n", "ban", eu.Member, "--board", "eu", "--reason", "x", "--until", "2100-12-01T00:00:00Z")
	require.NoError(t, inRedis.Unban(t.Context(), eu))
	writes("u\\x1b1 is no longer banned on board eu.\n", "unban", eu.Member, "--board", "eu")
	writes("u\\x1b1 is erased: recorded. No consumer has done it in Redis within 2s: one that runs will, as soon as it reads bans; consumer bans shows when.\n",
		"erase", eu.Member, "--yes", "--wait", "2s")

	for until, want := range map[string]time.Duration{"7d": 168 * time.Hour, "90s": 90 * time.Second} {
		begun := time.Now()
		code, stdout, stderr := execute(t, environ, "ban", "u2", "--reason", "x", "--until", until, "--wait", "10ms", "--json")
		var o struct {
			State   string
			Until   time.Time
			Problem *string
		}
		require.NoError(t, json.Unmarshal([]byte(stdout), &o), "code %d: %s%s", code, stdout, stderr)
		require.Equal(t, "banned", o.State)
		require.NotNil(t, o.Problem)
		require.WithinRange(t, o.Until, begun.Add(want).Add(-time.Minute), time.Now().Add(want).Add(time.Minute)) // by the clock of Redis
	}
	code, _, stderr := execute(t, environ, "ban", "u2", "--reason", "x", "--until", "tomorrow")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, stderr, "--until tomorrow must be a time such as")
}
