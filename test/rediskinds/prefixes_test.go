package rediskinds

// The rights of the commands that compare, rebuild and remove standings, as docs/security.md
// lists them: with them each does all that it does, and with one less it says which.

import (
	"os"
	"strings"
	"testing"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

func TestComparingRebuildingAndRemovingTakeTheRightsThatAreListed(t *testing.T) {
	t.Parallel()
	server := testenv.PrivateRedis(t)
	c := server.Client(t)
	place := newPlace(t, c, map[string]string{"redis.addresses": server.Addr()})
	place.Start(t)
	place.Publish(t, earned(1, 200)...)
	place.AwaitCaughtUp(t, within)
	place.TerminateAll(t)
	must(t, c.Del(t.Context(), place.Key("workers")).Err()) // else it is in use for 30 s

	for key, value := range as("someone") {
		place.Settings[key] = value
	}
	// The other prefix is a copy: a comparison with itself is refused.
	other := place.Prefix + "2"
	all, err := c.Keys(t.Context(), place.Prefix+":*").Result()
	must(t, err)
	for _, key := range all {
		must(t, c.Copy(t.Context(), key, strings.Replace(key, place.Prefix, other, 1), 0, false).Err())
	}
	rights := map[string][]string{
		"rebuild": append(leastRights(t, "consumer"), leastRights(t, "rebuild")...),
		"diff":    leastRights(t, "diff"),
		"drop":    leastRights(t, "drop"),
	}
	for _, try := range [][]string{
		{"rebuild", "--diff"}, {"diff", "--with", other}, {"drop", "--prefix", place.Prefix, "--force", "--yes"},
	} {
		rules := rights[try[0]]
		tried := leastRights(t, try[0]) // those that are its own
		for _, rule := range tried {
			if try[0] == "diff" && rule == "+hmget" {
				continue // for names, which nobody has here: TestADiffWithTheLeastRightsShowsNames…
			}
			less := without(rules, rule)
			user(t, c, "someone", place.Prefix, less...)
			must(t, c.ScriptFlush(t.Context()).Err())
			got := command(t, place, nil, try...)
			if _, isOptional := optional[rule]; isOptional {
				if got.code != 0 {
					t.Errorf("%s without %s: exit code %d: %s", try[0], rule, got.code, got.line())
				}
			} else if got.code == 0 || !strings.Contains(got.stderr, named(rule, prefixOf(rule, place.Prefix))) {
				t.Errorf("%s without %s: exit code %d: %s", try[0], rule, got.code, got.stderr)
			}
		}
		user(t, c, "someone", place.Prefix, rules...)
		must(t, c.Do(t.Context(), "acl", "log", "reset").Err())
		if got := command(t, place, nil, try...); got.code != 0 {
			t.Errorf("%s: exit code %d: %s", try[0], got.code, got.stderr)
		}
		nothingRefused(t, c)
	}
	if left := c.Keys(t.Context(), place.Prefix+":*").Val(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if left := c.Keys(t.Context(), other+":*").Val(); len(left) != len(all) {
		t.Errorf("the other prefix has %v", left)
	}
}

// prefixOf is the prefix that a rule of the documents is about: theirs are lb and lb2.
func prefixOf(rule, prefix string) string {
	if strings.HasPrefix(rule, "~lb2:") {
		return prefix + "2"
	}
	return prefix
}

// The way from one layout to another, as docs/operations.md has it, by one user.
func TestTheWayToAnotherLayoutTakesTheRightsThatItLists(t *testing.T) {
	t.Parallel()
	runbook, err := os.ReadFile("../../docs/operations.md")
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
	must(t, c.Del(t.Context(), place.Key("workers")).Err()) // else it is in use for 30 s
	lacks("+scan", second, drop...)
	lacks("+unlink", second, drop...)
	if got := command(t, place, second, drop...); got.code != 0 {
		t.Fatalf("exit code %d: %s", got.code, got.stderr)
	}
	nothingRefused(t, c)
	// And the rights that are taken back aren't missed.
	user(t, c, "standings", place.Prefix+"2", leastRights(t, "consumer")...)
	if got := command(t, place, second, "check"); got.code != 0 {
		t.Errorf("exit code %d: %s", got.code, got.stdout)
	}
	place.TerminateAll(t)
}
