package harness

// This file reads Redis with a client of its own.

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// RedisClient returns a client of the place's Redis.
func (p *Place) RedisClient() redis.UniversalClient { return p.redis }

// eachKey calls do for every key of the place, on every master of a cluster. A key may occur twice.
func (p *Place) eachKey(ctx context.Context, do func(key string)) error {
	scan := func(ctx context.Context, c redis.Cmdable) error {
		keys := c.Scan(ctx, 0, p.Prefix+":*", 1000).Iterator()
		for keys.Next(ctx) {
			do(keys.Val())
		}
		return keys.Err()
	}
	cluster, ok := p.redis.(*redis.ClusterClient)
	if !ok {
		return scan(ctx, p.redis)
	}
	var one sync.Mutex
	return cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
		one.Lock()
		defer one.Unlock()
		return scan(ctx, c)
	})
}

// EachName calls do for every key of the place's shards, with its name within the shard, on every master of
// a cluster. A key may occur twice.
func (p *Place) EachName(ctx context.Context, do func(key, name string)) error {
	return p.eachKey(ctx, func(key string) {
		if name, ours := p.inAShard(key); ours {
			do(key, name)
		}
	})
}

// Key returns a key of the place: Key("ledger"), Key("global:weekly:2026-W47"). If there are several
// shards, it belongs to the first one.
func (p *Place) Key(name string) string { return p.KeyIn(0, name) }

// Hash returns a hash of the place: "ledger", "origin", "windows", "workers". The hashes of several shards
// are merged.
func (p *Place) Hash(t testing.TB, name string) map[string]string {
	t.Helper()
	fields, err := p.hash(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return fields
}

func (p *Place) hash(ctx context.Context, name string) (map[string]string, error) {
	all, err := p.hashes(ctx, name)
	if err != nil {
		return nil, err
	}
	return together(name, all), nil
}

// Ledger returns the topic's positions as text, by partition. If there are several shards, it returns the
// lowest position; empty if a shard has none yet.
func (p *Place) Ledger(t testing.TB) map[int]string {
	t.Helper()
	positions, err := p.ledger(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return positions
}

func (p *Place) ledger(ctx context.Context) (map[int]string, error) {
	fields, err := p.hash(ctx, "ledger")
	if err != nil {
		return nil, err
	}
	positions := map[int]string{}
	for field, position := range fields {
		topic, partition, _ := strings.Cut(field, "/")
		n, err := strconv.Atoi(partition)
		if err != nil || !p.reads(topic) {
			return nil, fmt.Errorf("the ledger has a field %q, which is none of %s", field, p.joined())
		}
		if topic == p.Topic {
			positions[n] = position
		}
	}
	return positions, nil
}

// AwaitBegun waits until every partition of the topic has a position in every shard.
func (p *Place) AwaitBegun(t testing.TB, within time.Duration) {
	t.Helper()
	Eventually(t, within, func() string {
		positions := p.Ledger(t)
		for partition := range p.Ends(t) {
			if positions[partition] == "" {
				return fmt.Sprintf("partition %d hasn't begun in every shard: %v", partition, positions)
			}
		}
		return ""
	})
}

// fromOf returns the offset before which everything counts at a position.
func fromOf(position string) (int64, error) {
	from, _, _ := strings.Cut(strings.TrimPrefix(position, "torn:"), "..")
	return strconv.ParseInt(from, 10, 64)
}

// Counting returns the sum of the topic's positions over all partitions.
func (p *Place) Counting(t testing.TB) int64 {
	t.Helper()
	sum := int64(0)
	for partition, position := range p.Ledger(t) {
		n, err := fromOf(position)
		if err != nil {
			t.Fatalf("the ledger of partition %d: %v", partition, err)
		}
		sum += n
	}
	return sum
}

// Behind describes how the ledger is behind the log's ends; empty if every committed record counts. If a
// server is unavailable, it returns the error.
func (p *Place) Behind(ctx context.Context) string {
	for _, q := range p.all() {
		if behind := q.behind(ctx); behind != "" {
			return behind
		}
	}
	return ""
}

func (p *Place) behind(ctx context.Context) string {
	ends, err := p.ends(ctx, p.Topic)
	if err != nil {
		return err.Error()
	}
	if positions, err := p.ledger(ctx); err != nil {
		return fmt.Sprintf("%v (%v)", err, positions)
	}
	shards, err := p.hashes(ctx, "ledger")
	if err != nil {
		return err.Error()
	}
	for _, partition := range slices.Sorted(maps.Keys(ends)) {
		for shard, positions := range shards {
			field := fmt.Sprintf("%s/%d", p.Topic, partition)
			if want := strconv.FormatInt(ends[partition], 10); positions[field] != want {
				return fmt.Sprintf("the ledger of %s in shard %d stands at %q, and the log ends at %s (all: %v of %v)",
					field, shard, positions[field], want, shards, ends)
			}
		}
	}
	return ""
}

// AwaitCaughtUp waits until every committed record of the topics counts. It fails once the ledgers have not
// moved for the time still, however long the counting takes.
func (p *Place) AwaitCaughtUp(t testing.TB, still time.Duration) {
	t.Helper()
	p.Eventually(t, still, func() string {
		behind := p.Behind(t.Context())
		if behind != "" && p.alive() != "" {
			t.Fatalf("%s, and %s", behind, p.alive())
		}
		return behind
	})
}

// Eventually calls look until it returns an empty text, as long as the ledgers move. It fails the test with
// the last text once they have not moved for the time still. A slow machine is not a failure, but a
// consumer that stops counting is.
func (p *Place) Eventually(t testing.TB, still time.Duration, look func() (wrong string)) {
	t.Helper()
	deadline, last := time.Now().Add(still), ""
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 250*time.Millisecond) {
		wrong := look()
		if wrong == "" {
			return
		}
		if at := p.positions(t.Context()); at != "" && at != last {
			deadline, last = time.Now().Add(still), at
		}
		if time.Now().After(deadline) {
			t.Fatalf("the ledgers have stood still for %v: %s", still, wrong)
		}
		time.Sleep(pause)
	}
}

// positions returns the ledgers of the place and those beside it, in every shard; empty if a server is
// unavailable.
func (p *Place) positions(ctx context.Context) string {
	all := ""
	for _, q := range p.all() {
		shards, err := q.hashes(ctx, "ledger")
		if err != nil {
			return ""
		}
		all += fmt.Sprintln(shards)
	}
	return all
}

// leftByReshard reports whether a key is the mark that a reshard leaves in place of an old shard's schema.
func (p *Place) leftByReshard(ctx context.Context, key string) bool {
	text, err := p.redis.Get(ctx, key).Result()
	return err == nil && strings.HasPrefix(text, `{"moved":`) && strings.HasSuffix(key, ":schema")
}

// isNumber reports whether a key is the record of the place's number of shards.
func (p *Place) isNumber(ctx context.Context, key string) bool {
	return key == p.Prefix+":{0}:shards" && p.redis.Get(ctx, key).Val() == strconv.Itoa(p.Shards())
}

// Boards returns the sorted sets of the place by their names in the listing: the bits of every member's
// score. All other keys must be known ones.
func (p *Place) Boards(t testing.TB) map[string]map[string]uint64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	boards := map[string]map[string]uint64{}
	err := p.eachKey(ctx, func(key string) {
		name, ours := p.inAShard(key)
		switch {
		case key == p.Prefix+":{0}:leader", key == p.Prefix+":{0}:stays", p.isNumber(ctx, key): // for any number of shards
		case !ours && p.leftByReshard(ctx, key):
		case !ours:
			t.Errorf("a key outside of the shards: %q", key)
		case strings.HasSuffix(name, hiddenSuffix): // see Hidden
		case name == "banned", name == "ledger", name == "origin", name == "windows", name == "dropped", name == "borders", name == "final", name == "rules", name == "names", name == "schema", name == "workers", name == "hold":
		case strings.HasPrefix(name, "~try:"): // expires by itself
		case boards[name] != nil: // SCAN may return a key twice
		default:
			boards[name] = map[string]uint64{}
		}
	})
	if err != nil {
		t.Fatalf("list the keys of %s: %v", p.Prefix, err)
	}
	for name := range boards {
		boards[name] = p.Board(t, name)
	}
	return boards
}

const hiddenSuffix = ":hidden"

// Hidden returns the standings of banned members, in the form in which Boards returns the shown ones.
func (p *Place) Hidden(t testing.TB) map[string]map[string]uint64 {
	t.Helper()
	return p.hidden(t, "")
}

// hidden is Hidden with a suffix to the names.
func (p *Place) hidden(t testing.TB, suffix string) map[string]map[string]uint64 {
	t.Helper()
	all := map[string]map[string]uint64{}
	err := p.EachName(t.Context(), func(_, name string) {
		if of, ok := strings.CutSuffix(name, hiddenSuffix); ok && all[of+suffix] == nil {
			all[of+suffix] = p.Board(t, name)
		}
	})
	if err != nil {
		t.Fatalf("list the keys of %s: %v", p.Prefix, err)
	}
	return all
}

// inAShard returns a key's name within its shard; false if it belongs to no shard of the place.
func (p *Place) inAShard(key string) (name string, ours bool) {
	for shard := range p.Shards() {
		if name, ours = strings.CutPrefix(key, p.KeyIn(shard, "")); ours {
			return name, true
		}
	}
	return "", false
}

func (p *Place) board(ctx context.Context, t testing.TB, key string) map[string]uint64 {
	t.Helper()
	const page = 20_000
	members := map[string]uint64{}
	for from := int64(0); ; from += page {
		rows, err := p.redis.ZRangeWithScores(ctx, key, from, from+page-1).Result()
		if err != nil {
			t.Fatalf("read %s: %v", key, err)
		}
		for _, row := range rows {
			members[row.Member.(string)] = math.Float64bits(row.Score)
		}
		if len(rows) < page {
			return members
		}
	}
}

// Board returns a sorted set by its name in the listing: the bits of every member's score. The sets of
// several shards are merged, and every member must be on its own shard.
func (p *Place) Board(t testing.TB, name string) map[string]uint64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	all := map[string]uint64{}
	for shard := range p.Shards() {
		for member, score := range p.board(ctx, t, p.KeyIn(shard, name)) {
			if of := p.ShardOf(member); of != shard {
				t.Errorf("%s: member %q is on shard %d, and belongs on %d of %d", name, member, shard, of, p.Shards())
			}
			all[member] = score
		}
	}
	return all
}

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
