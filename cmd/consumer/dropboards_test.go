package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
)

// crowded returns the leftovers with some more boards, under the configured prefix.
func crowded(t *testing.T) (c *redis.Client, tag string, environ []string) {
	t.Helper()
	c, prefix, environ := leftovers(t)
	tag = prefix + ":{0}:"
	layout, err := codec.New(codec.Readable, periods.Weekly.Length(), 99_999_999)
	if err != nil {
		t.Fatal(err)
	}
	schema := ranking.Schema{Cluster: "c", Layouts: map[periods.Period]codec.Layout{periods.Weekly: layout}, Shards: 1, TimeZone: "UTC"}
	pipe := c.Pipeline()
	pipe.Set(t.Context(), tag+"schema", schema.Text(), 0)
	for _, board := range []string{"eu", "spam1", "spam2"} {
		pipe.HSet(t.Context(), tag+"windows", board+":weekly:2100-W01", `{"end":2,"expires":4102444800000,"start":1}`)
		pipe.ZAdd(t.Context(), tag+board+":weekly:2100-W01", redis.Z{Score: 1, Member: "ann"})
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c, tag, append(environ, "STANDINGS_REDIS_PREFIX="+prefix)
}

func windowsListed(t *testing.T, c *redis.Client, tag string) int64 {
	t.Helper()
	return c.HLen(t.Context(), tag+"windows").Val()
}

func TestBoardsAreDroppedByNameOrByHowTheyBegin(t *testing.T) {
	t.Parallel()
	c, tag, environ := crowded(t)
	// A consumer is running.
	line := fmt.Sprintf(`{"owner":"host-1","state":"running","at":%q}`, time.Now().UTC().Format(time.RFC3339Nano))
	if err := c.HSet(t.Context(), tag+"workers", "points/0", line).Err(); err != nil {
		t.Fatal(err)
	}
	code, out, errs := execute(t, environ, "drop", "--board", "spam*", "--yes")
	if code != 0 || !strings.Contains(out, "2 windows (spam1, spam2), 2 standings in them") || !strings.Contains(out, "Dropped 2 windows in ") || windowsListed(t, c, tag) != 2 {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	code, out, errs = execute(t, environ, "drop", "--board", "spam*", "--board", "eu", "--yes")
	if code != 0 || !strings.Contains(out, "1 window (eu)") || windowsListed(t, c, tag) != 1 {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	if n := c.HLen(t.Context(), tag+"dropped").Val(); n != 3 || c.Exists(t.Context(), tag+"eu:weekly:2100-W01").Val() != 0 {
		t.Errorf("%d windows are kept in mind", n)
	}
}

func TestBoardsThatMayBeAMistakeAreNotDropped(t *testing.T) {
	t.Parallel()
	c, tag, environ := crowded(t)
	for _, try := range []struct {
		args, says string
		code       int
	}{
		{"--board eus --yes", "no window of eus is listed", 1},
		{"--board * --yes", "is every board: use --prefix without --board", 2},
		{"--board e/u --yes", "is not a board name", 2},
		{"--board eu", "no terminal for the confirmation: use --yes", 2},
	} {
		code, _, errs := execute(t, environ, append([]string{"drop"}, strings.Fields(try.args)...)...)
		if code != try.code || !strings.Contains(errs, try.says) || windowsListed(t, c, tag) != 4 {
			t.Errorf("%s: exit code %d: %s", try.args, code, errs)
		}
	}
	if err := c.Set(t.Context(), tag+"~rebuild", "{}", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	code, _, errs := execute(t, environ, "drop", "--board", "eu", "--yes")
	if code != 1 || !strings.Contains(errs, "a rebuild is under way") || windowsListed(t, c, tag) != 4 {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
