package fence

import (
	"fmt"
	"strings"
	"testing"

	"github.com/standings/standings/test/harness"
)

// restricted gives the consumers their own user. rights changes the user's rights.
func restricted(t *testing.T, o harness.Options) (place *harness.Place, rights func(rules ...string)) {
	t.Helper()
	settings := map[string]string{"redis.username": "counter", "redis.password": "secret"}
	for key, value := range o.Settings {
		settings[key] = value
	}
	o.Settings = settings
	place = newPlace(t, o)
	rights = func(rules ...string) {
		t.Helper()
		args := []any{"ACL", "SETUSER", "counter"}
		for _, r := range rules {
			args = append(args, r)
		}
		harness.Must(t, place.RedisClient().Do(t.Context(), args...).Err())
	}
	rights("on", ">secret", "~*", "+@all")
	return place, rights
}

// The script dies at its last write, since the right to PEXPIREAT is missing.
func TestAScriptThatDiesMidwayHaltsAndNothingIsAddedTwice(t *testing.T) {
	t.Parallel()
	place, rights := restricted(t, harness.Options{})
	c := place.Start(t)
	place.Publish(t, harness.Earned(54, 500, 100, 1)...)
	place.AwaitCaughtUp(t, harness.Within)
	before := place.Ledger(t)[0]

	rights("-pexpireat")
	// A new board, so that the script must set an expiry.
	place.Publish(t, harness.Record(0, `{"user_id":"new","points":7,"board":"fresh"}`))
	halt := c.Log.AwaitHalt(t, harness.Within, "torn")
	if remedy := fmt.Sprint(halt.Fields["remedy"]); !strings.Contains(remedy, "rebuild") {
		t.Errorf("the remedy is %q", remedy)
	}
	if at := place.Ledger(t)[0]; at != "torn:"+before {
		t.Errorf("the ledger stands at %q, want torn:%s", at, before)
	}
	written := place.Boards(t)

	// After the right is granted again, what the script has written is still unknown.
	rights("+pexpireat")
	place.Publish(t, harness.Record(0, `{"user_id":"new","points":7,"board":"fresh"}`))
	awaitLine(t, place, 0, "halted", "torn")
	if now := place.Boards(t); fmt.Sprint(now) != fmt.Sprint(written) {
		t.Errorf("a torn ledger is written over:\n%v\n%v", written, now)
	}
	c.Terminate(t)
	second := place.Start(t)
	second.Log.AwaitHalt(t, harness.Within, "torn")

	// The log alone restores everything that it still contains.
	harness.Must(t, place.RedisClient().FlushAll(t.Context()).Err())
	second.Log.Await(t, harness.Within, "Redis was lost")
	place.Finish(t)
}

func TestARightThatIsTakenAwayHaltsUntilItIsGivenBack(t *testing.T) {
	t.Parallel()
	for _, right := range []string{"evalsha", "hget"} {
		t.Run(right, func(t *testing.T) {
			t.Parallel()
			place, rights := restricted(t, harness.Options{})
			c := place.Start(t)
			place.Publish(t, harness.Earned(55, 500, 100, 1)...)
			place.AwaitCaughtUp(t, harness.Within)
			rights("-" + right)
			place.Publish(t, harness.Earned(56, 500, 100, 1)...)
			halt := c.Log.AwaitHalt(t, harness.Within, "redis")
			// Redis up to 7.0 does not name a right that is missing inside of a script.
			if what := fmt.Sprint(halt.Fields["what"]); !strings.Contains(what, "permissions to run the '"+right+"'") && !strings.Contains(what, "can't run this command") {
				t.Errorf("the halt doesn't say that a right is missing: %s", what)
			}
			rights("+" + right)
			c.Log.Await(t, harness.Within, "the cause of its halt is gone")
			place.Finish(t)
		})
	}
}
