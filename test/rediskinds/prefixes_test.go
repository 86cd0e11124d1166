package rediskinds

// The rights for a change of layout, as docs/changes.md lists them.

import (
	"os"
	"strings"
	"testing"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

// prefixOf returns the prefix that a rule of the documents applies to; the documents use lb and lb2.
func prefixOf(rule, prefix string) string {
	if strings.HasPrefix(rule, "~lb2:") {
		return prefix + "2"
	}
	return prefix
}

// The procedure for a change of layout in docs/changes.md, with one user.
func TestTheWayToAnotherLayoutTakesTheRightsThatItLists(t *testing.T) {
	t.Parallel()
	runbook, err := os.ReadFile("../../docs/changes.md")
	must(t, err)
	more := rulesOf(t, string(runbook), "rights of the way to another layout")
	rules := append(leastRights(t, "consumer"), more...)
	server := testenv.PrivateRedis(t)
	c := server.Client(t)
	place := newPlace(t, c, as("standings"))
	place.Settings["redis.addresses"] = server.Addr()
	second := map[string]string{"redis.prefix": place.Prefix + "2", "kafka.group": place.Group + "2", "periods.weekly.layout": "wide"}
	user(t, c, "standings", place.Prefix, rules...)
	first := place.Start(t)
	place.Publish(t, earned(1, 1000)...)
	place.AwaitCaughtUp(t, within)

	diff, drop := []string{"diff", "--with", place.Prefix + "2"}, []string{"drop", "--prefix", place.Prefix, "--yes"}
	lacks := func(rule string, settings map[string]string, args ...string) {
		t.Helper()
		if !strings.Contains(strings.Join(more, " "), rule) {
			t.Errorf("the document doesn't list %s", rule)
		}
		nothingRefused(t, c)
		user(t, c, "standings", place.Prefix, without(rules, rule)...)
		must(t, c.ScriptFlush(t.Context()).Err())
		if got := command(t, place, settings, args...); got.code == 0 || !strings.Contains(got.line(), named(rule, prefixOf(rule, place.Prefix))) {
			t.Errorf("%s without %s: exit code %d: %s", args[0], rule, got.code, got.stderr)
		}
		user(t, c, "standings", place.Prefix, rules...)
		must(t, c.Do(t.Context(), "acl", "log", "reset").Err())
	}
	lacks("~lb2:*", second, "run")
	place.Start(t, second)
	harness.Eventually(t, within, func() string {
		return command(t, place, nil, diff...).stderr
	})
	first.Terminate(t)
	must(t, c.Del(t.Context(), place.Key("workers")).Err()) // otherwise it counts as in use for 30 s
	lacks("+scan", second, drop...)
	lacks("+unlink", second, drop...)
	if got := command(t, place, second, drop...); got.code != 0 {
		t.Fatalf("exit code %d: %s", got.code, got.stderr)
	}
	nothingRefused(t, c)
	// Nothing needs the additional rights after they are revoked.
	user(t, c, "standings", place.Prefix+"2", leastRights(t, "consumer")...)
	if got := command(t, place, second, "check"); got.code != 0 {
		t.Errorf("exit code %d: %s", got.code, got.stdout)
	}
	place.TerminateAll(t)
}
