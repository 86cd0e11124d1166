package rediskinds

// The least rights of every command with several shards, on the masters of a cluster: they are sufficient, and if
// one master lacks one, the command names it and the shard.

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/standings/standings/test/harness"
)

const shards = 12

// optionalRights has the rights without which a command works, silently or with a warning.
var optionalRights = map[string][]string{
	"run":     {"+info", "+client|setname"},
	"rebuild": {"+info", "+client|setname"},
	"reshard": {"+info", "+client|setname"},
	"top":     {"+client|setname"}, "rank": {"+client|setname"}, "boards": {"+client|setname"}, "status": {"+client|setname"},
	"diff": {"+info", "+client|setname"},
	"drop": {"+info", "+client|setname"},
}

// optionalCalls has the calls that a command makes although it may lack the right.
var optionalCalls = map[string][]string{"boards": {"info"}}

func TestEveryCommandHasTheRightsItNeedsOnShardsOfACluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	place := newPlace(t, c.Look(t), as("someone"))
	maps.Copy(place.Settings, map[string]string{"redis.addresses": strings.Join(c.Addresses(), ","), "redis.shards": fmt.Sprint(shards)})
	other := place.Prefix + "2"
	grant := func(prefix string, rules []string, nodes ...*harness.Node) {
		t.Helper()
		for _, n := range nodes {
			user(t, n.C, "someone", prefix, append(leastRights(t, "cluster"), rules...)...)
		}
	}
	consumer := leastRights(t, "consumer")
	reader := append(leastRights(t, "reader"), leastRights(t, "reader of several shards")...)

	// Two consumers fill two prefixes with the same data.
	grant(place.Prefix, append(consumer, "~"+other+":*"), c.All()...)
	place.Publish(t, earned(1, 1000)...)
	place.Start(t)
	place.Start(t, map[string]string{"redis.prefix": other, "kafka.group": place.Topic + "2"})
	place.AwaitCaughtUp(t, within)
	for _, n := range c.All() {
		user(t, n.C, "comparer", place.Prefix, append(leastRights(t, "cluster"), leastRights(t, "diff")...)...)
	}
	harness.Eventually(t, within, func() string {
		if got := place.Run(t, as("comparer"), "diff", "--with", other); got.Code != 0 {
			return got.Stdout + got.Stderr
		}
		return ""
	})
	for _, n := range c.All() {
		nothingRefused(t, n.C)
	}
	place.TerminateAll(t)
	for shard := range shards { // otherwise they count as in use for 30 s
		for _, prefix := range []string{place.Prefix, other} {
			harness.Must(t, place.RedisClient().Del(t.Context(), strings.Replace(place.KeyIn(shard, "workers"), place.Prefix, prefix, 1)).Err())
		}
	}

	// run runs a command without each of some rights on one master, and then with all of them.
	run := func(rules, lacks []string, args ...string) {
		t.Helper()
		prefix, settings := place.Prefix, map[string]string{}
		grant(prefix, rules, c.All()...)
		lacking := c.Nodes[1]
		for _, rule := range lacks {
			grant(prefix, without(rules, rule), lacking)
			harness.Must(t, lacking.C.ScriptFlush(t.Context()).Err())
			got := place.Run(t, settings, args...)
			said := strings.Join(harness.Reasons(got.Stderr), "\n")
			want, where := named(rule, prefix), lacking.Addr()
			switch {
			case rule == "~lb2:*": // the command reads the other prefix's number of shards first
				want, where = named(rule, other), ""
			case args[0] == "check":
				said, want = got.Stdout, strings.Replace(rule, "~lb", "~"+prefix, 1)
			}
			switch {
			case slices.Contains(optionalRights[args[0]], rule):
			case got.Code == 0:
				t.Logf("consumer %s does without %s", args[0], rule)
			case !strings.Contains(said, want) || !strings.Contains(said, where):
				t.Errorf("consumer %s without %s: exit code %d: %s", args[0], rule, got.Code, got.Stderr)
			}
			grant(prefix, rules, lacking)
		}
		for _, n := range c.All() {
			harness.Must(t, n.C.Do(t.Context(), "acl", "log", "reset").Err())
			harness.Must(t, n.C.ScriptFlush(t.Context()).Err())
		}
		if got := place.Run(t, settings, args...); got.Code != 0 {
			t.Errorf("consumer %v with the least rights: exit code %d: %s\n%s", args, got.Code, got.Stdout, got.Stderr)
		}
		for _, n := range c.All() {
			nothingRefused(t, n.C, optionalCalls[args[0]]...)
		}
	}
	for _, rule := range slices.DeleteFunc(slices.Clone(consumer), func(rule string) bool { return slices.Contains(optionalRights["run"], rule) }) {
		grant(place.Prefix, consumer, c.All()...)
		grant(place.Prefix, without(consumer, rule), c.Nodes[1])
		refused(t, place, mismatch{says: []string{named(rule, place.Prefix), fmt.Sprintf("shard %d of %d on %s", shards/3, shards, c.Nodes[1].Addr())}}, "run")
	}
	run(reader, reader, "top", "global", "weekly")
	run(reader, reader, "rank", "global", "weekly", "m7", "--around", "3")
	run(reader, reader, "boards")
	reports(t, place)
	run(reader, reader, "status")
	harness.Must(t, place.RedisClient().Del(t.Context(), place.KeyIn(0, "workers")).Err())
	comparer := leastRights(t, "diff")
	run(comparer, comparer, "diff", "--with", other)
	rebuilder := append(consumer, leastRights(t, "rebuild")...)
	run(rebuilder, rebuilder, "rebuild", "--diff")
	resharder := append(consumer, leastRights(t, "reshard")...)
	run(resharder, leastRights(t, "reshard"), "reshard", "--to", "5")
	checker := append(consumer, "+config|get")
	run(checker, []string{"~lb:*", "+zadd", "+hscan"}, "check")
	// A command that lacks a right which it needs only later has already removed data. This list has only the
	// rights without which it removes nothing on that master.
	dropper := append(consumer, "+unlink")
	run(dropper, []string{"~lb:*", "+hget", "+unlink"}, "drop", "--board", "eu", "--yes")
	cleaner := leastRights(t, "drop")
	run(cleaner, []string{"~lb:*", "+hgetall", "+scan", "+unlink"}, "drop", "--prefix", place.Prefix, "--force", "--yes")
}
