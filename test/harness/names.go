package harness

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// Names returns the members' names: the time of the name in Unix ms, a blank and the name. It checks that
// every name is kept as long as a window can exist, and is on its member's shard.
func (p *Place) Names(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{}
	now := time.Now().UnixMilli()
	for shard := range p.Shards() {
		found, err := p.redis.HGetAll(t.Context(), p.KeyIn(shard, "names")).Result()
		if err != nil {
			t.Fatal(err)
		}
		for member, text := range found {
			words := strings.SplitN(text, " ", 3)
			until, err := strconv.ParseInt(words[min(1, len(words)-1)], 10, 64)
			if len(words) < 3 || err != nil || until <= now {
				t.Errorf("%q is called %q, which ends before now, %d", member, text, now)
				continue
			}
			if of := p.ShardOf(member); of != shard {
				t.Errorf("the name of %q is on shard %d, and belongs on %d of %d", member, shard, of, p.Shards())
			}
			all[member] = words[0] + " " + words[2]
		}
	}
	return all
}
