package harness

// Shards as another client knows them, by the documents alone: docs/reading.md says which
// shard a member is on, and what its keys are.

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

// shardsEnv is how many shards the places of a run have that don't say so themselves.
const shardsEnv = "STANDINGS_TEST_SHARDS"

// DefaultShards is how many shards a place has that doesn't say so.
func DefaultShards(t testing.TB) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv(shardsEnv), "1"))
	if err != nil || n < 1 {
		t.Fatalf("%s=%q: want a number of shards", shardsEnv, os.Getenv(shardsEnv))
	}
	return n
}

// ShardsByTurns is one shard or five, for what takes too long to be tested with both: every run has
// one of them, and says which.
func ShardsByTurns(t testing.TB) string {
	t.Helper()
	n := cmp.Or(os.Getenv(shardsEnv), []string{"1", "5"}[time.Now().Unix()%2])
	t.Logf("the boards have %s shards this time; %s=%s has it so again", n, shardsEnv, n)
	return n
}

// OneAndFive are one shard and five, for a test of both; a short run has one of them, by turns.
func OneAndFive(t testing.TB) []string {
	t.Helper()
	if testing.Short() {
		return []string{ShardsByTurns(t)}
	}
	return []string{"1", "5"}
}

// Shards is how many shards the place has.
func (p *Place) Shards() int {
	n, err := strconv.Atoi(cmp.Or(p.Settings["redis.shards"], "1"))
	if err != nil {
		p.test.Fatalf("redis.shards: %v", err)
	}
	return n
}

// KeyIn is a key of one of the place's shards.
func (p *Place) KeyIn(shard int, name string) string {
	n := p.Shards()
	if n == 1 {
		return p.Prefix + ":{0}:" + name
	}
	return fmt.Sprintf("%s:{%s}:%d:%s", p.Prefix, tag(shard, n), n, name)
}

// Slot is the slot of a cluster that a shard's keys are in.
func (p *Place) Slot(shard int) int {
	if n := p.Shards(); n > 1 {
		return slot(tag(shard, n))
	}
	return slot("0")
}

// ShardOf is the shard that a member is on.
func (p *Place) ShardOf(member string) int { return shardOf(member, p.Shards()) }

// KeyOf is a key of the shard that a member is on.
func (p *Place) KeyOf(member, name string) string { return p.KeyIn(p.ShardOf(member), name) }

// shardOf cuts the hashes into equal ranges by their first 32 bits, of which those that a
// border lies in need the rest.
func shardOf(member string, shards int) int {
	hash, n := xxhash.Sum64String(member), uint64(shards)
	high, low := hash>>32, hash&(1<<32-1)
	return int((high*n + low*n>>32) >> 32)
}

// tag is the hash tag of a shard: the first of i.0, i.1, … whose slot is in its range.
func tag(shard, shards int) string {
	for j := 0; ; j++ {
		text := fmt.Sprintf("%d.%d", shard, j)
		if slot(text)*shards/16384 == shard {
			return text
		}
	}
}

// slot is the CRC-16 of the cluster's specification, bit by bit over the whole message.
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

// hashes are the same hash of every shard.
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

// together are the hashes of all shards as one: of a ledger the position furthest behind, of
// anything else what the first shard has that has it.
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

// before reports whether less counts at one position than at another. Nothing counts where
// there is none, and of what can't be read nobody knows.
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
