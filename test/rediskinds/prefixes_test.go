package rediskinds

// The rights of the commands that compare, rebuild and remove standings, as docs/security.md
// lists them: with them each does all that it does, and with one less it says which.

import (
	"strings"
	"testing"

	"github.com/standings/standings/internal/testenv"
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
		"diff":    append(leastRights(t, "diff"), "~"+other+":*"),
		"drop":    leastRights(t, "drop"),
	}
	for _, try := range [][]string{
		{"rebuild", "--diff"}, {"diff", "--with", other}, {"drop", "--prefix", place.Prefix, "--force", "--yes"},
	} {
		rules := rights[try[0]]
		tried := leastRights(t, try[0]) // those that are its own
		for _, rule := range tried {
			if rule == "~lb2:*" {
				continue // another prefix here
			}
			less := without(rules, rule)
			user(t, c, "someone", place.Prefix, less...)
			must(t, c.ScriptFlush(t.Context()).Err())
			got := command(t, place, nil, try...)
			if _, isOptional := optional[rule]; isOptional {
				if got.code != 0 {
					t.Errorf("%s without %s: exit code %d: %s", try[0], rule, got.code, got.line())
				}
			} else if got.code == 0 || !strings.Contains(got.stderr, named(rule, place.Prefix)) {
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
