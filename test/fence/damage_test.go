package fence

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
)

// boardsOf are two partitions of which each has a board of its own.
func boardsOf(seed uint64, events int) (records []*kgo.Record) {
	for _, r := range earned(seed, events, 100, 2) {
		value := string(r.Value)
		value = strings.Replace(value, `"board":"eu"`, `"board":"global"`, 1)
		if r.Partition == 1 {
			value = strings.Replace(value, `"board":"global"`, `"board":"eu"`, 1)
			value = strings.Replace(value, `"points":"many"`, `"points":"many","board":"eu"`, 1)
		}
		records = append(records, harness.Record(int(r.Partition), value))
	}
	return records
}

// window is the name of the only window that is listed of a board and a period.
func window(t *testing.T, place *harness.Place, board, period string) string {
	t.Helper()
	found := ""
	for name := range place.Hash(t, "windows") {
		if strings.HasPrefix(name, board+":"+period+":") {
			found = max(found, name)
		}
	}
	if found == "" {
		t.Fatalf("no %s window of %s is listed", period, board)
	}
	return found
}

func TestABoardDeletedUnderTheConsumerHaltsWhoeverTouchesItUntilItIsRestored(t *testing.T) {
	t.Parallel()
	// A rebalance would have it halt anew, and say so.
	place := newPlace(t, harness.Options{Partitions: 2, Settings: map[string]string{"kafka.session_timeout": "30s"}})
	c := place.Start(t)
	place.Publish(t, boardsOf(50, 600)...)
	place.AwaitCaughtUp(t, within)

	ctx := t.Context()
	key := place.KeyOf("visitor", window(t, place, "global", "yearly"))
	saved, err := place.RedisClient().Dump(ctx, key).Result()
	must(t, err)
	left, err := place.RedisClient().PTTL(ctx, key).Result()
	must(t, err)
	ends := time.Now().Add(left)
	must(t, place.RedisClient().Del(ctx, key).Err())

	place.Publish(t, boardsOf(51, 600)...)
	halt := c.Log.AwaitHalt(t, within, "board_lost")
	if halt.Fields["partition"] != 0.0 || !strings.Contains(fmt.Sprint(halt.Fields["what"]), "global:yearly") || halt.Fields["remedy"] == "" {
		t.Errorf("the halt doesn't say what is gone, and what to do: %v", halt.Fields)
	}
	awaitPosition(t, place, 1) // the other has nothing to do with it
	stood := place.Ledger(t)[0]
	awaitLine(t, place, 0, "halted", "board_lost")
	awaitLine(t, place, 1, "running", "")
	if at := place.Ledger(t)[0]; at != stood {
		t.Errorf("a halted partition moved from %s to %s", stood, at)
	}
	if n := c.Log.Count("partition halted"); n != 1 {
		t.Errorf("a halt that lasts is said %d times", n)
	}

	// An event of the other partition for the lost board halts that one, too.
	place.Publish(t, one(1, "visitor", 5))
	harness.Eventually(t, within, func() string {
		for _, line := range c.Log.Lines() {
			if line.Message == "partition halted" && line.Fields["partition"] == 1.0 && line.Fields["reason"] == "board_lost" {
				return ""
			}
		}
		return "the other partition doesn't halt"
	})

	// At the time at which it went before, however long all this has taken.
	must(t, place.RedisClient().Do(ctx, "restore", key, ends.UnixMilli(), saved, "replace", "absttl").Err())
	c.Log.Await(t, within, "the cause of its halt is gone")
	place.AwaitCaughtUp(t, within)
	awaitLine(t, place, 0, "running", "")
	finish(t, place)
}

func TestALostLedgerHaltsUntilItIsBack(t *testing.T) {
	t.Parallel()
	place := newPlace(t, harness.Options{Settings: map[string]string{"redis.shards": "1"}}) // whose one ledger it takes away and puts back
	c := place.Start(t)
	place.Publish(t, earned(52, 500, 100, 1)...)
	place.AwaitCaughtUp(t, within)
	ledger := place.Hash(t, "ledger")
	must(t, place.RedisClient().Del(t.Context(), place.Key("ledger")).Err())
	c.Log.AwaitHalt(t, foundWithin, "ledger_lost")
	place.Publish(t, earned(53, 500, 100, 1)...)
	if now := place.Hash(t, "ledger"); len(now) != 0 {
		t.Fatalf("a halted consumer has written a ledger: %v", now)
	}
	must(t, place.RedisClient().HSet(t.Context(), place.Key("ledger"), ledger).Err())
	c.Log.Await(t, within, "the cause of its halt is gone")
	finish(t, place)
}

// restricted gives the consumers a user of their own, whose rights the test takes
// away and gives back.
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
		must(t, place.RedisClient().Do(t.Context(), args...).Err())
	}
	rights("on", ">secret", "~*", "+@all")
	return place, rights
}

func TestAScriptThatDiesMidwayHaltsAndNothingIsAddedTwice(t *testing.T) {
	t.Parallel()
	for _, right := range []string{"zadd", "pexpireat"} {
		t.Run(right, func(t *testing.T) {
			t.Parallel()
			place, rights := restricted(t, harness.Options{})
			c := place.Start(t)
			place.Publish(t, earned(54, 500, 100, 1)...)
			place.AwaitCaughtUp(t, within)
			before := place.Ledger(t)[0]

			rights("-" + right)
			// A board of its own, so that there is an expiry to set.
			place.Publish(t, harness.Record(0, `{"user_id":"new","points":7,"board":"fresh"}`))
			halt := c.Log.AwaitHalt(t, within, "torn")
			if remedy := fmt.Sprint(halt.Fields["remedy"]); !strings.Contains(remedy, "rebuild") {
				t.Errorf("the remedy is %q", remedy)
			}
			if at := place.Ledger(t)[0]; at != "torn:"+before {
				t.Errorf("the ledger stands at %q, want torn:%s", at, before)
			}
			written := place.Boards(t)

			// With the right given back nothing says what was written.
			rights("+" + right)
			place.Publish(t, harness.Record(0, `{"user_id":"new","points":7,"board":"fresh"}`))
			awaitLine(t, place, 0, "halted", "torn")
			if now := place.Boards(t); fmt.Sprint(now) != fmt.Sprint(written) {
				t.Errorf("a torn ledger is written over:\n%v\n%v", written, now)
			}
			c.Terminate(t)
			second := place.Start(t)
			second.Log.AwaitHalt(t, within, "torn")

			// From the log alone, as long as it reaches back.
			must(t, place.RedisClient().FlushAll(t.Context()).Err())
			second.Log.Await(t, within, "Redis was lost")
			finish(t, place)
		})
	}
}

func TestARightThatIsTakenAwayHaltsUntilItIsGivenBack(t *testing.T) {
	t.Parallel()
	for _, right := range []string{"evalsha", "hget"} {
		t.Run(right, func(t *testing.T) {
			t.Parallel()
			place, rights := restricted(t, harness.Options{})
			c := place.Start(t)
			place.Publish(t, earned(55, 500, 100, 1)...)
			place.AwaitCaughtUp(t, within)
			rights("-" + right)
			place.Publish(t, earned(56, 500, 100, 1)...)
			halt := c.Log.AwaitHalt(t, within, "redis")
			// Redis up to 7.0 doesn't name a right that is missing inside of a script.
			if what := fmt.Sprint(halt.Fields["what"]); !strings.Contains(what, "permissions to run the '"+right+"'") && !strings.Contains(what, "can't run this command") {
				t.Errorf("the halt doesn't say that a right is missing: %s", what)
			}
			rights("+" + right)
			c.Log.Await(t, within, "the cause of its halt is gone")
			finish(t, place)
		})
	}
}

// awaitPosition waits until a partition has counted all that its log has.
func awaitPosition(t *testing.T, place *harness.Place, partition int) {
	t.Helper()
	want := fmt.Sprint(place.Ends(t)[partition])
	harness.Eventually(t, within, func() string {
		if at := place.Ledger(t)[partition]; at != want {
			return fmt.Sprintf("partition %d stands at %s of %s", partition, at, want)
		}
		return ""
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
