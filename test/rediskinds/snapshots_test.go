package rediskinds

// The rights of a consumer that takes snapshots, as docs/security.md has them.

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

func TestSnapshotsAreTakenWithTheLeastRightsAndAMissingOneIsNamedAtStart(t *testing.T) {
	t.Parallel()
	server := testenv.PrivateRedis(t)
	c := server.Client(t)
	place := newPlace(t, c, as("standings"))
	dir := filepath.Join(t.TempDir(), "snapshots")
	place.Settings["redis.addresses"], place.Settings["snapshots.url"] = server.Addr(), "dir:"+dir
	more := leastRights(t, "snapshots")
	rules := append(leastRights(t, "consumer"), more...)
	if len(more) == 0 {
		t.Fatal("the document lists none")
	}
	for _, rule := range more {
		user(t, c, "standings", place.Prefix, without(rules, rule)...)
		must(t, c.ScriptFlush(t.Context()).Err())
		for _, args := range [][]string{{"run"}, {"snapshot", "take"}} {
			if got := command(t, place, nil, args...); got.code == 0 || !strings.Contains(got.stderr, named(rule, prefixOf(rule, place.Prefix))) {
				t.Errorf("%v without %s: exit code %d: %s", args, rule, got.code, got.stderr)
			}
		}
	}
	user(t, c, "standings", place.Prefix, rules...)
	must(t, c.Do(t.Context(), "acl", "log", "reset").Err())
	place.Publish(t, earned(1, 1000)...)
	place.Start(t)
	place.AwaitCaughtUp(t, within)
	harness.Eventually(t, within, func() string {
		if all, _ := filepath.Glob(filepath.Join(dir, "*", "manifest.json")); len(all) == 0 {
			return "there is no snapshot"
		}
		return ""
	})
	if got := command(t, place, nil, "snapshot", "verify"); got.code != 0 {
		t.Errorf("exit code %d: %s", got.code, got.stderr)
	}
	nothingRefused(t, c)
	place.TerminateAll(t)
	must(t, os.RemoveAll(dir))
}
