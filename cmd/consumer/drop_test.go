package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/test/testenv"
)

// leftovers writes the keys of a prefix as if a consumer had written them a while ago. The tests of drop
// run in parallel, because drop watches a prefix for seconds.
func leftovers(t *testing.T) (c *redis.Client, prefix string, environ []string) {
	t.Helper()
	prefix = testenv.Prefix(t)
	c = redis.NewClient(&redis.Options{Addr: testenv.Redis(t).Addr()})
	t.Cleanup(func() { _ = c.Close() })
	pipe := c.Pipeline()
	tag := prefix + ":{0}:"
	pipe.HSet(t.Context(), tag+"ledger", "points/0", "10")
	pipe.Set(t.Context(), tag+"schema", "{}", 0)
	pipe.HSet(t.Context(), tag+"windows", "global:weekly:2100-W01", "1 2 3")
	pipe.ZAdd(t.Context(), tag+"global:weekly:2100-W01", redis.Z{Score: 1, Member: "ann"}, redis.Z{Score: 2, Member: "bob"})
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c, prefix, []string{"STANDINGS_REDIS_ADDRESSES=" + testenv.Redis(t).Addr(), "STANDINGS_REDIS_PREFIX=other"}
}

func keysUnder(t *testing.T, c *redis.Client, prefix string) int {
	t.Helper()
	all, err := c.Keys(t.Context(), prefix+":*").Result()
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

func TestADropShowsWhatItRemovesAndRemovesIt(t *testing.T) {
	t.Parallel()
	c, prefix, environ := leftovers(t)
	code, out, errs := execute(t, environ, "drop", "--prefix", prefix, "--yes")
	want := fmt.Sprintf("Under the prefix %s: 1 window (global), 2 standings in them, about ", prefix)
	if code != 0 || !strings.HasPrefix(out, want) || !strings.Contains(out, "Removed 4 keys in ") ||
		!strings.Contains(out, "nothing is left under "+prefix) || keysUnder(t, c, prefix) != 0 {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	code, out, _ = execute(t, environ, "drop", "--prefix", prefix, "--yes")
	if code != 0 || out != "Nothing is stored under the prefix "+prefix+".\n" {
		t.Errorf("exit code %d: %s", code, out)
	}
}

func TestWhatIsInUseIsNotDropped(t *testing.T) {
	t.Parallel()
	c, prefix, environ := leftovers(t)
	line := fmt.Sprintf(`{"owner":"host-1","state":"halted","at":%q}`, time.Now().UTC().Format(time.RFC3339Nano))
	if err := c.HSet(t.Context(), prefix+":{0}:workers", "points/0", line).Err(); err != nil {
		t.Fatal(err)
	}
	code, _, errs := execute(t, environ, "drop", "--prefix", prefix, "--yes")
	if code != 1 || !strings.Contains(errs, "is in use: host-1 reported within the last 30 seconds, for 1 partition") || keysUnder(t, c, prefix) != 5 {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if err := c.Del(t.Context(), prefix+":{0}:workers").Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.Set(t.Context(), prefix+":{0}:~rebuild", "{}", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	code, _, errs = execute(t, environ, "drop", "--prefix", prefix, "--yes")
	if code != 1 || !strings.Contains(errs, "is in use: a rebuild is running, or was killed less than a minute ago; nothing was removed") || keysUnder(t, c, prefix) != 5 {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if err := c.Del(t.Context(), prefix+":{0}:~rebuild").Err(); err != nil {
		t.Fatal(err)
	}
	// This imitates a consumer that does not report, and that counts once drop has listed what it will
	// remove.
	counts := &afterFirstWrite{then: func() {
		if err := c.HIncrBy(t.Context(), prefix+":{0}:ledger", "points/0", 1).Err(); err != nil {
			t.Error(err)
		}
	}}
	var told bytes.Buffer
	code = consumer(t.Context(), []string{"drop", "--prefix", prefix, "--yes"}, environ, strings.NewReader(""), counts, &told)
	errs = told.String()
	if code != 1 || !strings.Contains(errs, "is in use by a consumer. Stop it and wait half a minute; nothing was removed") || keysUnder(t, c, prefix) != 4 {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// afterFirstWrite is a stdout that calls a function after the first write.
type afterFirstWrite struct{ then func() }

func (s *afterFirstWrite) Write(b []byte) (int, error) {
	if s.then != nil {
		s.then()
		s.then = nil
	}
	return len(b), nil
}

func TestADropIsRefusedWhereItMayBeAMistake(t *testing.T) {
	t.Parallel()
	c, prefix, environ := leftovers(t)
	own := append(environ, "STANDINGS_REDIS_PREFIX="+prefix)
	for _, try := range []struct {
		args    string
		environ []string
		says    string
	}{
		{"drop --yes", environ, "--prefix or --board is required"},
		{"drop --yes --prefix *", environ, `--prefix "*" must be`},
		{"drop --prefix " + prefix, environ, "no terminal for the confirmation: use --yes"},
		{"drop --yes --prefix " + prefix, own, "is the configured prefix (redis.prefix): use --force to remove it"},
	} {
		code, _, errs := execute(t, try.environ, strings.Fields(try.args)...)
		if code != 2 || !strings.Contains(errs, try.says) || keysUnder(t, c, prefix) != 4 {
			t.Errorf("%s: exit code %d: %s", try.args, code, errs)
		}
	}
	code, _, errs := execute(t, own, "drop", "--yes", "--force", "--prefix", prefix)
	if code != 0 || keysUnder(t, c, prefix) != 0 {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
