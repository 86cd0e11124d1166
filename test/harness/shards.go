package harness

// This file computes shards and keys as any other client does, from the documentation alone:
// docs/reading.md defines the shard of a member, and its keys.

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
)

// shardsEnv sets the number of shards for places that do not set it themselves.
const shardsEnv = "STANDINGS_TEST_SHARDS"

// defaultShards returns the number of shards of a place that does not set it.
func defaultShards(t testing.TB) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv(shardsEnv), "1"))
	if err != nil || n < 1 {
		t.Fatalf("%s=%q: want a number of shards", shardsEnv, os.Getenv(shardsEnv))
	}
	return n
}

// ShardsByTurns returns one shard or five, for tests that would take too long with both: it alternates
// between runs, and logs its choice.
func ShardsByTurns(t testing.TB) string {
	t.Helper()
	n := cmp.Or(os.Getenv(shardsEnv), []string{"1", "5"}[time.Now().Unix()%2])
	t.Logf("the boards have %s shards this time; %s=%s has it so again", n, shardsEnv, n)
	return n
}

// OneAndFive returns one shard and five, for a test with both; a short run uses only one of them, by turns.
func OneAndFive(t testing.TB) []string {
	t.Helper()
	if testing.Short() {
		return []string{ShardsByTurns(t)}
	}
	return []string{"1", "5"}
}

// Shards returns the place's number of shards.
func (p *Place) Shards() int {
	n, err := strconv.Atoi(cmp.Or(p.Settings["redis.shards"], "1"))
	if err != nil {
		p.test.Fatalf("redis.shards: %v", err)
	}
	return n
}

// KeyIn returns a key of one of the place's shards.
func (p *Place) KeyIn(shard int, name string) string {
	n := p.Shards()
	if n == 1 {
		return p.Prefix + ":{0}:" + name
	}
	return fmt.Sprintf("%s:{%s}:%d:%s", p.Prefix, tag(shard, n), n, name)
}

// Slot returns the cluster slot of a shard's keys.
func (p *Place) Slot(shard int) int {
	if n := p.Shards(); n > 1 {
		return slot(tag(shard, n))
	}
	return slot("0")
}

// ShardOf returns the shard of a member.
func (p *Place) ShardOf(member string) int { return shardOf(member, p.Shards()) }

// KeyOf returns a key of a member's shard.
func (p *Place) KeyOf(member, name string) string { return p.KeyIn(p.ShardOf(member), name) }

// shardOf divides the hashes into equal ranges. It multiplies the upper and the lower 32 bits separately,
// to avoid overflow.
func shardOf(member string, shards int) int {
	hash, n := xxhash.Sum64String(member), uint64(shards)
	high, low := hash>>32, hash&(1<<32-1)
	return int((high*n + low*n>>32) >> 32)
}

// tag returns the hash tag of a shard: the first of i.0, i.1, … whose slot is in the shard's range.
func tag(shard, shards int) string {
	for j := 0; ; j++ {
		text := fmt.Sprintf("%d.%d", shard, j)
		if slot(text)*shards/16384 == shard {
			return text
		}
	}
}

// slot returns the CRC-16 of the cluster specification, computed bit by bit over the whole text.
func slot(text string) int {
	crc := 0
	for i := range len(text) * 8 {
		bit := int(text[i/8]) >> (7 - i%8) & 1
		top := crc >> 15 & 1
		crc = crc << 1 & 0xffff
		if bit != top {
			crc ^= 0x1021
		}
	}
	return crc % 16384
}

// hashes returns the same hash of every shard.
func (p *Place) hashes(ctx context.Context, name string) ([]map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	all := make([]map[string]string, p.Shards())
	for shard := range all {
		fields, err := p.redis.HGetAll(ctx, p.KeyIn(shard, name)).Result()
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", p.KeyIn(shard, name), err)
		}
		all[shard] = fields
	}
	return all, nil
}

// together merges the hashes of all shards: for the ledger it takes the lowest position, for other hashes
// the value of the first shard that has the field.
func together(name string, all []map[string]string) map[string]string {
	one := map[string]string{}
	fields := map[string]bool{}
	for _, of := range all {
		for field := range of {
			fields[field] = true
		}
	}
	for field := range maps.Keys(fields) {
		for _, of := range all {
			text, ok := of[field]
			is, known := one[field]
			if ok && !known || name == "ledger" && (!ok || known && before(text, is)) {
				one[field] = text
			}
		}
	}
	return one
}

// before reports whether position a counts less than position b. A missing or unreadable position counts
// nothing.
func before(a, b string) bool {
	from := func(text string) (int64, bool) {
		first, _, sweeping := strings.Cut(text, "..")
		n, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			return -1, false
		}
		return n, sweeping
	}
	x, sweeps := from(a)
	y, other := from(b)
	return x < y || x == y && sweeps && !other
}
