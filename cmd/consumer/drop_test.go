package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/test/testenv"
)

// leftovers writes the keys of a prefix as if a consumer had written them a while ago. The tests of drop
// run in parallel, because drop watches a prefix for seconds.
func leftovers(t *testing.T) (c *redis.Client, prefix string, environ []string) {
	t.Helper()
	prefix = testenv.Prefix(t)
	c = testenv.RedisClient(t)
	pipe := c.Pipeline()
	tag := prefix + ":{0}:"
	pipe.HSet(t.Context(), tag+"ledger", "points/0", "10")
	pipe.Set(t.Context(), tag+"schema", "{}", 0)
	pipe.HSet(t.Context(), tag+"windows", "global:weekly:2100-W01", "1 2 3")
	pipe.ZAdd(t.Context(), tag+"global:weekly:2100-W01", redis.Z{Score: 1, Member: "ann"}, redis.Z{Score: 2, Member: "bob"})
	_, err := pipe.Exec(t.Context())
	require.NoError(t, err)
	return c, prefix, []string{"STANDINGS_REDIS_ADDRESSES=" + testenv.Redis(t).Addr(), "STANDINGS_REDIS_PREFIX=other"}
}

func keysUnder(t *testing.T, c *redis.Client, prefix string) int {
	t.Helper()
	all, err := c.Keys(t.Context(), prefix+":*").Result()
	require.NoError(t, err)
	return len(all)
}

// reports writes the status line of a consumer's worker. The owner is written in JSON as it is.
func reports(t *testing.T, c *redis.Client, prefix, owner string) {
	t.Helper()
	line := fmt.Sprintf(`{"owner":"%s","state":"running","at":%q}`, owner, time.Now().UTC().Format(time.RFC3339Nano))
	require.NoError(t, c.HSet(t.Context(), prefix+":{0}:workers", "points/0", line).Err())
}

// drops executes drop and expects this exit code.
func drops(t *testing.T, environ []string, code int, args ...string) (out, errs string) {
	t.Helper()
	got, out, errs := execute(t, environ, append([]string{"drop"}, args...)...)
	require.Equal(t, code, got, out+errs)
	return out, errs
}

func TestADropShowsWhatItRemovesAndRemovesIt(t *testing.T) {
	t.Parallel()
	c, prefix, environ := leftovers(t)
	out, _ := drops(t, environ, 0, "--prefix", prefix, "--yes")
	require.Contains(t, out, fmt.Sprintf("Under the prefix %s: 1 window (global), 2 standings in them, about ", prefix))
	require.Contains(t, out, "Removed 4 keys in ")
	require.Contains(t, out, "nothing is left under "+prefix)
	require.Zero(t, keysUnder(t, c, prefix))
	out, _ = drops(t, environ, 0, "--prefix", prefix, "--yes")
	require.Equal(t, "Nothing is stored under the prefix "+prefix+".\n", out)
}

func TestWhatIsInUseIsNotDropped(t *testing.T) {
	t.Parallel()
	c, prefix, environ := leftovers(t)
	// Nothing from Redis reaches a terminal raw.
	board := prefix + ":{0}:eu\x1b]0;pwned\a\nThere is nothing:weekly:2100-W01"
	require.NoError(t, c.ZAdd(t.Context(), board, redis.Z{Score: 1, Member: "ann"}).Err())
	reports(t, c, prefix, `host\u001b[2J\nforged`)
	out, errs := drops(t, environ, 1, "--prefix", prefix, "--yes")
	require.Contains(t, out, `(eu\x1b]0;pwned\x07\x0aThere is nothing, global)`)
	require.Contains(t, errs, `is in use: host\x1b[2J\x0aforged reported within the last 30 seconds, for 1 partition`)
	require.Equal(t, 6, keysUnder(t, c, prefix))
	require.NoError(t, c.Del(t.Context(), prefix+":{0}:workers", board).Err())

	require.NoError(t, c.Set(t.Context(), prefix+":{0}:~rebuild", "{}", time.Minute).Err())
	_, errs = drops(t, environ, 1, "--prefix", prefix, "--yes")
	require.Contains(t, errs, "is in use: a rebuild is running, or was killed less than a minute ago; nothing was removed")
	require.Equal(t, 5, keysUnder(t, c, prefix))
	require.NoError(t, c.Del(t.Context(), prefix+":{0}:~rebuild").Err())
	// This imitates a consumer that does not report, and that counts once drop has listed what it will
	// remove.
	counts := &afterFirstWrite{then: func() { _ = c.HIncrBy(t.Context(), prefix+":{0}:ledger", "points/0", 1).Err() }}
	var told bytes.Buffer
	require.Equal(t, 1, consumer(t.Context(), []string{"drop", "--prefix", prefix, "--yes"}, environ, strings.NewReader(""), counts, &told))
	require.Contains(t, told.String(), "is in use by a consumer. Stop it and wait half a minute; nothing was removed")
	require.Equal(t, 4, keysUnder(t, c, prefix))
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

// crowded returns the leftovers with some more boards, under the configured prefix.
func crowded(t *testing.T) (c *redis.Client, tag string, environ []string) {
	t.Helper()
	c, prefix, environ := leftovers(t)
	tag = prefix + ":{0}:"
	layout, err := codec.New(codec.Readable, periods.Weekly.Length(), 99_999_999)
	require.NoError(t, err)
	schema := ranking.Schema{Cluster: "c", Layouts: map[periods.Period]codec.Layout{periods.Weekly: layout}, Shards: 1, TimeZone: "UTC"}
	pipe := c.Pipeline()
	pipe.Set(t.Context(), tag+"schema", schema.Text(), 0)
	for _, board := range []string{"eu", "spam1", "spam2"} {
		pipe.HSet(t.Context(), tag+"windows", board+":weekly:2100-W01", `{"end":2,"expires":4102444800000,"start":1}`)
		pipe.ZAdd(t.Context(), tag+board+":weekly:2100-W01", redis.Z{Score: 1, Member: "ann"})
	}
	_, err = pipe.Exec(t.Context())
	require.NoError(t, err)
	return c, tag, append(environ, "STANDINGS_REDIS_PREFIX="+prefix)
}

func windowsListed(t *testing.T, c *redis.Client, tag string) int64 {
	t.Helper()
	return c.HLen(t.Context(), tag+"windows").Val()
}

func TestBoardsAreDroppedByNameOrByHowTheyBegin(t *testing.T) {
	t.Parallel()
	c, tag, environ := crowded(t)
	reports(t, c, strings.TrimSuffix(tag, ":{0}:"), "host-1") // a consumer is running
	out, _ := drops(t, environ, 0, "--board", "spam*", "--yes")
	require.Contains(t, out, "2 windows (spam1, spam2), 2 standings in them")
	require.Contains(t, out, "Dropped 2 windows in ")
	require.Equal(t, int64(2), windowsListed(t, c, tag))
	out, _ = drops(t, environ, 0, "--board", "spam*", "--board", "eu", "--yes")
	require.Contains(t, out, "1 window (eu)")
	require.Equal(t, int64(1), windowsListed(t, c, tag))
	require.Equal(t, int64(3), c.HLen(t.Context(), tag+"dropped").Val())
	require.Zero(t, c.Exists(t.Context(), tag+"eu:weekly:2100-W01").Val())
}

func TestADropIsRefusedWhereItMayBeAMistake(t *testing.T) {
	t.Parallel()
	c, tag, own := crowded(t)
	prefix := strings.TrimSuffix(tag, ":{0}:")
	environ := append(own[:len(own):len(own)], "STANDINGS_REDIS_PREFIX=other")
	require.NoError(t, c.Set(t.Context(), tag+"~rebuild", "{}", time.Minute).Err())
	keys := keysUnder(t, c, prefix)
	for _, try := range []struct {
		args    string
		environ []string
		code    int
		says    string
	}{
		{"--yes", environ, 2, "--prefix or --board is required"},
		{"--yes --prefix *", environ, 2, `--prefix "*" must be`},
		{"--prefix " + prefix, environ, 2, "no terminal for the confirmation: use --yes"},
		{"--yes --prefix " + prefix, own, 2, "is the configured prefix (redis.prefix): use --force to remove it"},
		{"--board eus --yes", own, 1, "no window of eus is listed"},
		{"--board * --yes", own, 2, "is every board: use --prefix without --board"},
		{"--board e/u --yes", own, 2, "is not a board name"},
		{"--board eu", own, 2, "no terminal for the confirmation: use --yes"},
		{"--board eu --yes", own, 1, "a rebuild is under way"},
	} {
		_, errs := drops(t, try.environ, try.code, strings.Fields(try.args)...)
		require.Contains(t, errs, try.says)
		require.Equal(t, keys, keysUnder(t, c, prefix))
	}
	require.NoError(t, c.Del(t.Context(), tag+"~rebuild").Err())
	drops(t, own, 0, "--yes", "--force", "--prefix", prefix)
	require.Zero(t, keysUnder(t, c, prefix))
}
