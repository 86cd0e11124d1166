package ban

import (
	"strings"
	"testing"
	"time"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/bans"
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
		code, stdout, stderr := clitest.Execute(t, Command, c.environ, append([]string{"ban"}, c.args...)...)
		if code != cli.ExitUsage || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: code %d, want %q: %s%s", name, code, c.want, stdout, stderr)
		}
	}
}

func TestWhatIsRecordedIsSaidInASentenceAndAsJSON(t *testing.T) {
	clitest.Documented(t, "ban", outcome{})
	clitest.Documented(t, "bans", report{})
	eu := bans.Key{Board: "eu", Member: "u\x1b1"}
	for want, o := range map[string]outcome{
		"u\\x1b1 is banned on board eu until 2026-12-01T00:00:00.000Z.\n": {State: "banned", Until: new("2026-12-01T00:00:00.000Z"), Done: true},
		"u\\x1b1 is no longer banned on board eu.\n":                      {State: "shown", Done: true},
		"u\\x1b1 is erased: recorded. Nobody runs.\n":                     {State: "erased", Problem: new("Nobody runs")},
	} {
		if got := o.text(eu); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestAnEndIsATimeOrHowLongFromNow(t *testing.T) {
	now := time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"2026-12-01T00:00:00Z": time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), "7d": now.Add(168 * time.Hour), "90s": now.Add(90 * time.Second),
	} {
		if got, err := parseUntil(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	if _, err := parseUntil("tomorrow", now); err == nil {
		t.Error("tomorrow is taken")
	}
}
