package rediskinds

// What becomes of the API's reads from replicas: through a reshard, with a replica that hangs, and
// without a right that they take.

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

// behindAReplica is a place on a master that has a replica, and the address where that is served.
func behindAReplica(t *testing.T, settings map[string]string) (place *harness.Place, replica *testenv.RedisServer, link *testenv.Link, address string) {
	t.Helper()
	master := testenv.LocalRedis(t)
	replica, link = testenv.Replica(t, master)
	place = newPlace(t, master.Client(t), map[string]string{"redis.addresses": master.Addr()})
	for _, server := range []*testenv.RedisServer{master, replica} {
		user(t, server.Client(t), "boards", place.Prefix, slices.Concat(leastRights(t, "reader"), leastRights(t, "reader of several shards"), leastRights(t, "reader of replicas"))...)
	}
	place.Start(t)
	place.Publish(t, earned(1, 500)...)
	place.AwaitCaughtUp(t, within)
	settings = maps.Clone(settings)
	settings["api.replicas"] = replica.Addr()
	return place, replica, link, serveReplicas(t, place, settings)
}

// pageOf is what is answered about a board, and with which status.
func pageOf(ctx context.Context, address string) (p page, status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/v1/boards/global/periods/yearly/windows/current/standings?limit=1000", nil)
	if err != nil {
		return p, 0, err
	}
	r, err := http.DefaultClient.Do(request)
	if err != nil {
		return p, 0, err
	}
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err == nil && r.StatusCode == http.StatusOK {
		err = json.Unmarshal(body, &p)
	}
	return p, r.StatusCode, err
}

// readAllTheTime reads a board until stop, and holds what is shown to never being less than it was.
func readAllTheTime(t *testing.T, address string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var reading sync.WaitGroup
	reading.Go(func() {
		for most, answered := 0, 0; ; {
			p, status, err := pageOf(ctx, address)
			switch {
			case ctx.Err() != nil:
				if answered == 0 {
					t.Error("nothing was answered")
				}
				return
			case err != nil:
				t.Error(err)
				return
			case status == http.StatusServiceUnavailable: // for a moment
			case status != http.StatusOK:
				t.Errorf("status %d", status)
				return
			case p.Window.Members < most:
				t.Errorf("%d members, after %d: %+v", p.Window.Members, most, p.Trust)
				return
			default:
				most, answered = p.Window.Members, answered+1
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	return func() {
		cancel()
		reading.Wait()
	}
}

func TestAReshardIsFollowedWhereReplicasAreRead(t *testing.T) {
	t.Parallel()
	place, _, link, address := behindAReplica(t, map[string]string{"api.replica_max_age": "1h"})
	awaitPage(t, place, address, "at first", fromReplica)
	stop := readAllTheTime(t, address)
	defer stop()
	onShards := func(n int) func(*page) bool {
		return func(p *page) bool {
			for _, s := range p.Trust.Shards {
				if s.Age == nil {
					return false
				}
			}
			return fromReplica(p) && max(1, len(p.Trust.Shards)) == n
		}
	}
	seed := uint64(2)
	for _, to := range []int{3, 1, 2} {
		// Once with a replica that hears of it late: what it holds is whole, and old.
		before, _, err := pageOf(t.Context(), address)
		must(t, err)
		if to == 1 {
			link.Hold(true)
		}
		place.Command(t, "reshard", "--to", fmt.Sprint(to), "--json")
		if to == 1 {
			is, status, err := pageOf(t.Context(), address)
			must(t, err)
			if status != http.StatusOK || !onShards(3)(&is) || is.Window.Members < before.Window.Members {
				t.Errorf("what the replica holds is as before the reshard, and this is shown: %d %+v", status, is)
			}
			link.Hold(false)
		}
		place.Settings["redis.shards"] = fmt.Sprint(to)
		place.Publish(t, earned(seed, 200)...)
		seed++
		place.AwaitCaughtUp(t, within)
		awaitPage(t, place, address, fmt.Sprintf("with %d shards", to), onShards(to))
	}
}

// A server that hangs takes no connection down, so whoever waits for it waits for their whole time.
func TestAReplicaThatHangsIsLeftWithinSeconds(t *testing.T) {
	t.Parallel()
	place, replica, _, address := behindAReplica(t, map[string]string{"api.replica_max_age": "1h", "api.timeout": "2s"})
	awaitPage(t, place, address, "at first", fromReplica)
	replica.Pause()
	paused := time.Now()
	harness.Eventually(t, within, func() string {
		p, status, err := pageOf(t.Context(), address)
		must(t, err)
		if status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout {
			return "it can't be read"
		}
		if status != http.StatusOK || !fromMaster(&p) {
			return fmt.Sprintf("%d %+v", status, p)
		}
		return ""
	})
	// A second until it is looked at, one for its answer, and as long as a request takes.
	if took := time.Since(paused); took > 15*time.Second {
		t.Errorf("it was left after %v", took)
	}
	place.Publish(t, earned(2, 100)...)
	place.AwaitCaughtUp(t, within)
	awaitPage(t, place, address, "while it hangs", fromMaster)
	replica.Resume()
	awaitPage(t, place, address, "once it goes on", fromReplica)
}

func TestWithoutARightThatReplicasTakeTheAPISaysSoAtStart(t *testing.T) {
	t.Parallel()
	reader := slices.Concat(leastRights(t, "reader"), leastRights(t, "reader of several shards"))
	serving := func(settings map[string]string) map[string]string {
		all := as("boards")
		maps.Copy(all, map[string]string{"api.listen": "127.0.0.1:0", "api.read_from": "replica"})
		maps.Copy(all, settings)
		return all
	}
	t.Run("of a single server", func(t *testing.T) {
		t.Parallel()
		master := testenv.LocalRedis(t)
		replica, _ := testenv.Replica(t, master)
		place := newPlace(t, master.Client(t), map[string]string{"redis.addresses": master.Addr()})
		for _, server := range []*testenv.RedisServer{master, replica} {
			user(t, server.Client(t), "boards", place.Prefix, reader...)
		}
		refused(t, place, mismatch{settings: serving(map[string]string{"api.replicas": replica.Addr()}), says: []string{"api.read_from is replica", named("+info", place.Prefix)}}, "serve")
	})
	t.Run("of a cluster", func(t *testing.T) {
		t.Parallel()
		c := newCluster(t)
		place := c.place(t, map[string]string{"redis.addresses": strings.Join(c.Addresses(), ","), "redis.shards": "3"})
		for _, n := range c.All() {
			user(t, n.C, "boards", place.Prefix, slices.Concat(reader, leastRights(t, "cluster"), leastRights(t, "reader of replicas"))...)
		}
		refused(t, place, mismatch{settings: serving(nil), says: []string{"api.read_from is replica", named("+readonly", place.Prefix)}}, "serve")
	})
	t.Run("of Sentinels", func(t *testing.T) {
		t.Parallel()
		s := newSentinels(t, 3, "hunter3")
		place := newPlace(t, s.look(t), s.settings(t))
		for _, server := range s.servers {
			user(t, server.Client(t), "boards", place.Prefix, slices.Concat(reader, leastRights(t, "reader of replicas"))...)
		}
		// Its user standings may ask for the master alone.
		refused(t, place, mismatch{settings: serving(nil), says: []string{"api.read_from is replica", "ask Sentinel 127.0.0.1:", "sentinel|replicas"}}, "serve")
	})
}
