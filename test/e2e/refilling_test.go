package e2e

// Redis is lost while a consumer has a long log: no reader may take a partial board for a complete one.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

func TestWhileALostRedisIsRefilledNoBoardLooksWhole(t *testing.T) {
	testenv.SlowEmbedded(t)
	t.Parallel()
	place := harness.New(t, harness.Options{})
	var all []*kgo.Record
	for i := range 60_000 {
		all = append(all, harness.Record(0, fmt.Sprintf(`{"user_id":"u%d","points":1}`, i%40_000)))
	}
	place.Publish(t, all...)
	consumer := place.Start(t)
	place.AwaitCaughtUp(t, within)
	harness.Eventually(t, within, func() string {
		if code, said := place.Says(t, nil, "top", "global", "weekly", "--json"); code != 0 || !strings.Contains(said, `"state": "current"`) {
			return said
		}
		return ""
	})

	// All keys disappear at once, as if an empty Redis replaced the old one. After the restart, a hold stops
	// the refill, so that the test has time to check.
	client := place.RedisClient()
	keys, err := client.Keys(t.Context(), place.Key("*")).Result()
	if err != nil || len(keys) == 0 {
		t.Fatal(keys, err)
	}
	if err := client.Del(t.Context(), keys...).Err(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(within); client.Exists(t.Context(), place.Key("ledger")).Val() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it isn't begun anew")
		}
	}
	if err := client.Set(t.Context(), place.Key("hold"), "a test", within).Err(); err != nil {
		t.Fatal(err)
	}
	if at := place.Ledger(t)[0]; at == "60000" {
		t.Fatal("it was refilled before anybody could look: the log has to be longer")
	}
	for _, args := range [][]string{{"top", "global", "weekly"}, {"rank", "global", "weekly", "u1"}, {"status"}, {"check"}} {
		if _, said := place.Says(t, nil, args...); !strings.Contains(said, "still to read; until then boards are partial") {
			t.Errorf("%v: %s", args, said)
		}
	}
	consumer.AwaitNotReady(t, within, "refilling", "Redis was lost")
	if err := client.Del(t.Context(), place.Key("hold")).Err(); err != nil {
		t.Fatal(err)
	}
	place.AwaitCaughtUp(t, within)
	harness.Eventually(t, within, func() string {
		if code, said := place.Says(t, nil, "top", "global", "weekly", "--json"); code != 0 || !strings.Contains(said, `"state": "current"`) {
			return said
		}
		return ""
	})
	place.CheckBoards(t)
}
