package rediskinds

// The API reads from replicas, with the least rights, through failovers.

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

// page is what the API answers about a board.
type page struct {
	Window struct{ Members int }
	Trust  struct {
		State  string
		Age    *int64 `json:"replica_age_ms"`
		Ledger map[string]string
		Shards []struct {
			Age *int64 `json:"replica_age_ms"`
		}
	}
}

// serveReplicas serves a place's boards as the user boards, from replicas.
func serveReplicas(t *testing.T, place *harness.Place, settings map[string]string) (address string) {
	t.Helper()
	before := place.Settings
	defer func() { place.Settings = before }()
	place.Settings = maps.Clone(before)
	maps.Copy(place.Settings, as("boards"))
	place.Settings["api.read_from"] = "replica"
	maps.Copy(place.Settings, settings)
	return place.Serve(t)
}

// awaitPage reads a board until the ledger is the place's, all is right, and nothing else is wrong.
// Until then it may be anything but another number of members of the same ledger.
func awaitPage(t *testing.T, place *harness.Place, address, what string, right func(*page) bool) {
	t.Helper()
	var seen string
	harness.Eventually(t, within, func() string {
		r, err := http.Get(address + "/v1/boards/global/periods/yearly/windows/current/standings?limit=1000") //nolint:noctx // a test's
		must(t, err)
		body, err := io.ReadAll(r.Body)
		must(t, err)
		must(t, r.Body.Close())
		var p page
		if seen = fmt.Sprintf("%s: %d %.600s", what, r.StatusCode, body); r.StatusCode != http.StatusOK {
			return seen
		}
		must(t, json.Unmarshal(body, &p))
		for partition, position := range place.Ledger(t) {
			if p.Trust.Ledger[fmt.Sprintf("%s/%d", place.Topic, partition)] != position {
				return seen
			}
		}
		if p.Trust.State != "whole" || !right(&p) {
			return seen
		}
		return ""
	})
}

func fromReplica(p *page) bool { return p.Trust.Age != nil }
func fromMaster(p *page) bool  { return p.Trust.Age == nil }

func TestTheAPIReadsFromTheReplicasOfACluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	place := c.place(t, map[string]string{"redis.addresses": strings.Join(c.Addresses(), ","), "redis.shards": "3"})
	rights := slices.Concat(leastRights(t, "reader"), leastRights(t, "reader of several shards"), leastRights(t, "cluster"),
		leastRights(t, "reader of replicas"), leastRights(t, "reader of a cluster's replicas"))
	for _, n := range c.All() {
		user(t, n.C, "boards", place.Prefix, rights...)
	}
	place.Start(t)
	place.Publish(t, earned(1, 1000)...)
	place.AwaitCaughtUp(t, within)
	address := serveReplicas(t, place, nil)
	third := func(p *page) bool { // the master that has a replica has the last of three shards
		s := p.Trust.Shards
		return fromReplica(p) && len(s) == 3 && s[0].Age == nil && s[1].Age == nil && s[2].Age != nil
	}
	awaitPage(t, place, address, "at first", third)
	asked := func(n *harness.Node) string { return n.C.Info(t.Context(), "commandstats").Val() }
	if stats := asked(c.Replica); !strings.Contains(stats, "cmdstat_evalsha:") {
		t.Errorf("the replica has run no script:\n%s", stats)
	}
	for _, n := range c.All() {
		nothingRefused(t, n.C)
	}

	must(t, c.Replica.C.ClusterFailover(t.Context()).Err())
	c.AwaitMaster(t, c.Replica, c.Nodes...)
	c.Nodes[2].Await(t, "info replication", func(info string) bool {
		return strings.Contains(info, "role:slave") && strings.Contains(info, "master_link_status:up")
	})
	place.Publish(t, earned(2, 500)...)
	place.AwaitCaughtUp(t, within)
	awaitPage(t, place, address, "after a failover", third)

	c.Nodes[2].Kill()
	place.Publish(t, earned(3, 500)...)
	place.AwaitCaughtUp(t, within)
	awaitPage(t, place, address, "without a replica", fromMaster)
}

func TestTheAPIReadsFromTheReplicaThatSentinelsKnow(t *testing.T) {
	t.Parallel()
	s := newSentinels(t, 3, "hunter3")
	place := newPlace(t, s.look(t), s.settings(t))
	maps.Copy(place.Settings, as("standings"))
	grant := func(server *testenv.RedisServer) {
		user(t, server.Client(t), "standings", place.Prefix, leastRights(t, "consumer")...)
		user(t, server.Client(t), "boards", place.Prefix, slices.Concat(leastRights(t, "reader"), leastRights(t, "reader of several shards"), leastRights(t, "reader of replicas"))...)
	}
	for _, server := range s.servers {
		grant(server)
	}
	place.Start(t)
	place.Publish(t, earned(1, 1000)...)
	place.AwaitCaughtUp(t, within)
	address := serveReplicas(t, place, map[string]string{"redis.sentinel.username": "boards"})
	awaitPage(t, place, address, "at first", fromReplica)

	_, next := s.master(t)
	s.failOver(t)
	s.awaitMaster(t, next)
	place.Publish(t, earned(2, 500)...)
	place.AwaitCaughtUp(t, within)
	awaitPage(t, place, address, "after a failover", fromReplica)

	master, next := s.settled(t)
	master.Kill()
	s.awaitMaster(t, next)
	place.Publish(t, earned(3, 500)...)
	place.AwaitCaughtUp(t, within)
	awaitPage(t, place, address, "without a replica", fromMaster)
	master.Start()
	grant(master)
	awaitPage(t, place, address, "with one again", fromReplica)
}

func TestTheAPIReadsFromTheReplicasOfASingleServer(t *testing.T) {
	t.Parallel()
	master := testenv.LocalRedis(t)
	replica, link := testenv.Replica(t, master)
	c := redis.NewClient(&redis.Options{Addr: master.Addr(), DB: 3})
	t.Cleanup(func() { must(t, c.Close()) })
	place := newPlace(t, c, map[string]string{"redis.addresses": master.Addr(), "redis.db": "3"})
	for _, server := range []*testenv.RedisServer{master, replica} {
		user(t, server.Client(t), "boards", place.Prefix, slices.Concat(leastRights(t, "reader"), leastRights(t, "reader of several shards"), leastRights(t, "reader of replicas"), []string{"+select"})...)
	}
	place.Start(t)
	place.Publish(t, earned(1, 200)...)
	place.AwaitCaughtUp(t, within)
	address := serveReplicas(t, place, map[string]string{"api.replicas": replica.Addr(), "api.replica_max_age": "2s"})
	awaitPage(t, place, address, "at first", fromReplica)

	link.Hold(true)
	place.Publish(t, earned(2, 200)...)
	place.AwaitCaughtUp(t, within)
	awaitPage(t, place, address, "with a replica that is too old", fromMaster)
	link.Hold(false)
	awaitPage(t, place, address, "with one that has caught up", fromReplica)
	for _, server := range []*testenv.RedisServer{master, replica} {
		nothingRefused(t, server.Client(t))
	}
}
