package e2e

// Tests of the comparison with the oracle: it detects any error in a single shard.

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

func TestWhateverIsWrongInAShardIsNoticed(t *testing.T) {
	testenv.RealRedis(t, "keys that are put back as they were")
	t.Parallel()
	place := banning(t, map[string]string{"redis.shards": "2"})
	place.Publish(t, points(0)...)
	place.Start(t)
	place.AwaitCaughtUp(t, within)
	orders(t, place, "ban", "u4", "--reason", "aimbot")
	place.TerminateAll(t)
	place.Banned = place.Bans(t)
	place.Check(t)

	c, board, member := place.RedisClient(), "global:yearly:"+time.Now().UTC().Format("2006"), "u3"
	key, elsewhere := place.KeyOf(member, board), place.KeyIn(1-place.ShardOf(member), board)
	hidden, shown := place.KeyOf("u4", board+":hidden"), place.KeyOf("u4", board)
	ledger, windows := place.KeyOf(member, "ledger"), place.KeyOf(member, "windows")
	score := c.ZScore(t.Context(), key, member).Val()
	add := func(key string, score float64) error {
		return c.ZAdd(t.Context(), key, redis.Z{Member: member, Score: score}).Err()
	}
	for says, tamper := range map[string]struct {
		key string
		do  func() error
	}{
		`"u3": want`:             {key, func() error { return add(key, math.Nextafter(score, math.Inf(1))) }},
		`"u3" is missing`:        {key, func() error { return c.ZRem(t.Context(), key, member).Err() }},
		`:hidden: "u4": want`:    {hidden, func() error { return c.ZIncrBy(t.Context(), hidden, 1, "u4").Err() }},
		`"u4" must not be there`: {shown, func() error { return c.ZAdd(t.Context(), shown, redis.Z{Member: "u4"}).Err() }},
		"belongs on":             {elsewhere, func() error { return add(elsewhere, score) }},
		"goes at":                {key, func() error { return c.Persist(t.Context(), key).Err() }},
		`lists it as "", want`:   {windows, func() error { return c.HDel(t.Context(), windows, board).Err() }},
		"not caught up":          {ledger, func() error { return c.HSet(t.Context(), ledger, place.Topic+"/0", "1").Err() }},
	} {
		was, err1 := c.Dump(t.Context(), tamper.key).Result()
		goes, err2 := c.PExpireTime(t.Context(), tamper.key).Result() // absolute, as a remaining time shrinks
		if err := errors.Join(err1, err2, tamper.do()); err != nil {
			t.Fatal(err)
		}
		if found := strings.Join(harness.Differences(t, place.Check), "\n"); !strings.Contains(found, says) {
			t.Errorf("the check doesn't say %q, but: %s", says, found)
		}
		if err := c.Do(t.Context(), "restore", tamper.key, max(goes, 0).Milliseconds(), was, "replace", "absttl").Err(); err != nil {
			t.Fatal(err)
		}
	}
	place.Check(t)
}
