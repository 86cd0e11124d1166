package rediskinds

// Standings of several shards on the masters of a cluster: compared and removed with the
// least rights, whatever their number of shards.

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/codec"
	"github.com/standings/standings/internal/ledger"
	"github.com/standings/standings/internal/periods"
	"github.com/standings/standings/internal/ranking"
	"github.com/standings/standings/internal/ranking/diff"
)

// shardsOf writes a thousand members to the shards under a prefix.
func shardsOf(t *testing.T, client redis.UniversalClient, prefix string, of ledger.Shards) {
	t.Helper()
	layout, err := codec.New(codec.Readable, periods.Weekly.Length(), 99_999_999)
	must(t, err)
	now := time.Now()
	w, err := periods.Calendar{}.At(periods.Weekly, now.UnixMilli())
	must(t, err)
	points := ledger.Partition{Topic: "points"}
	for i := range int(of) {
		store := ranking.New(ranking.Config{
			Client: client, Prefix: prefix, Shard: i, Shards: of, Cluster: "c1", Timeout: 5 * time.Second,
			Periods: map[periods.Period]ranking.Period{periods.Weekly: {Layout: layout, Retention: 60 * 24 * time.Hour}},
		})
		_, err := store.Begin(t.Context(), []ledger.StartPosition{{Partition: points, At: ledger.At(0), Origin: &ledger.Origin{}}})
		must(t, err)
		g := ledger.Group{Windows: []int{0}}
		for n := range 1000 {
			if id := fmt.Sprint("m", n); of.Of(xxhash.Sum64String(id)) == i {
				g.Members = append(g.Members, ledger.Member{ID: []byte(id), Points: int64(n), Time: w.Start})
			}
		}
		a, _, err := store.Apply(t.Context(), &ledger.Piece{
			Partition: points, Expected: ledger.At(0), Next: ledger.At(1000), Groups: []ledger.Group{g},
			Windows: []ledger.Window{{Board: "global", Period: "weekly", Name: w.Name, Start: w.Start, End: w.End}},
		})
		must(t, err)
		if a.Outcome != ledger.Applied {
			t.Fatal(a)
		}
	}
}

// keysOf are how many keys of a prefix each master has.
func (c *cluster) keysOf(t *testing.T, prefix string) (each []int) {
	t.Helper()
	for _, n := range c.Nodes {
		all, err := n.C.Keys(t.Context(), prefix+":*").Result()
		must(t, err)
		each = append(each, len(all))
	}
	return each
}

func TestShardsOnTheMastersOfAClusterAreComparedAndRemoved(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	client := c.Look(t)
	place := newPlace(t, client, nil)
	place.Settings["redis.addresses"] = strings.Join(c.Addresses(), ",")
	prefixes := map[ledger.Shards]string{1: place.Prefix, 6: place.Prefix + "2", 12: place.Prefix + "12"}
	for n, prefix := range prefixes {
		shardsOf(t, client, prefix, n)
	}
	shardsOf(t, client, place.Prefix+"6", 6)
	if each := c.keysOf(t, prefixes[12]); each[0] != each[1] || each[1] != each[2] {
		t.Errorf("12 shards aren't spread evenly: %v keys", each)
	}
	run := func(code int, says, prefix string, args ...string) {
		t.Helper()
		for _, n := range c.All() {
			user(t, n.C, "someone", prefix, append(leastRights(t, "cluster"), leastRights(t, args[0])...)...)
		}
		if got := command(t, place, as("someone"), args...); got.code != code || !strings.Contains(got.stdout, says) {
			t.Errorf("consumer %v doesn't end with %d and show %q, but with %d: %s\n%s", args, code, says, got.code, got.stdout, got.stderr)
		}
	}
	run(0, "Both ledgers are at the same positions.\n\n1 window equal of 1.\n", place.Prefix, "diff", "--with", prefixes[6])
	for _, two := range [][2]string{{prefixes[6], place.Prefix + "6"}, {prefixes[12], prefixes[6]}} {
		d := diff.Prefixes{Most: 10}
		var err error
		d.A, err = ranking.NewView(t.Context(), client, two[0], 1, 5*time.Second)
		must(t, err)
		d.B, err = ranking.NewView(t.Context(), client, two[1], 1, 5*time.Second)
		must(t, err)
		windows, err := d.Run(t.Context())
		must(t, err)
		if len(windows) != 1 || windows[0].Differs() || !windows[0].Exact {
			t.Errorf("%s and %s: %+v", two[0], two[1], windows)
		}
	}
	six, err := ranking.NewView(t.Context(), client, prefixes[6], 1, 5*time.Second)
	must(t, err)
	names, err := six.Listings(t.Context())
	must(t, err)
	for name := range names[0] {
		shard := six.Stores()[ledger.Shards(6).Of(xxhash.Sum64String("m7"))]
		must(t, client.ZIncrBy(t.Context(), shard.Keys().Listed(name), 1000, "m7").Err())
	}
	run(1, "m7", place.Prefix, "diff", "--with", prefixes[6])

	run(0, "Under the prefix "+prefixes[6]+": 1 window (global), 1,000 standings in them", prefixes[6], "drop", "--prefix", prefixes[6], "--yes")
	if each := c.keysOf(t, prefixes[6]); each[0]+each[1]+each[2] != 0 {
		t.Errorf("left: %v", each)
	}
	for _, other := range []string{prefixes[1], prefixes[12], place.Prefix + "6"} {
		if each := c.keysOf(t, other); each[0]+each[1]+each[2] == 0 {
			t.Errorf("%s is gone", other)
		}
	}
	// Boards by the number of shards that is configured.
	for _, n := range c.All() {
		user(t, n.C, "reader", prefixes[12], slices.Concat(leastRights(t, "cluster"), leastRights(t, "reader"), leastRights(t, "reader of several shards"))...)
	}
	settings := as("reader")
	settings["redis.prefix"], settings["redis.shards"] = prefixes[12], "12"
	settings["periods.monthly.enabled"], settings["periods.yearly.enabled"] = "false", "false"
	for args, says := range map[string]string{"top global weekly": "m999", "rank global weekly m7 --around 1": "m6", "top global weekly --limit 5 --offset 900": "m99"} {
		if got := command(t, place, settings, strings.Fields(args)...); got.code != 0 || !strings.Contains(got.stdout, says) {
			t.Errorf("consumer %s: exit code %d: %s\n%s", args, got.code, got.stdout, got.stderr)
		}
	}
	for _, n := range c.All() {
		user(t, n.C, "someone", prefixes[12], append(append(leastRights(t, "cluster"), leastRights(t, "consumer")...), "+unlink")...)
	}
	maps.Copy(settings, as("someone"))
	if got := command(t, place, settings, "drop", "--board", "glob*", "--yes"); got.code != 0 || !strings.Contains(got.stdout, "Dropped 1 window in ") {
		t.Errorf("exit code %d: %s\n%s", got.code, got.stdout, got.stderr)
	}
	for _, n := range c.Nodes {
		if left := n.C.Keys(t.Context(), prefixes[12]+":*:global:*").Val(); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
	for _, n := range c.All() {
		nothingRefused(t, n.C)
	}
}
