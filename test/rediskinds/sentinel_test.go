package rediskinds

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/test/harness"
	"github.com/standings/standings/test/testenv"
)

// watched is the name of the master that the Sentinels watch.
const watched = "points"

// sentinels watch a master and a replica.
type sentinels struct {
	addresses []string
	servers   map[string]*testenv.RedisServer // by address
	password  string
}

// newSentinels starts a master, a replica, and Sentinels that detect the loss of the master within a second.
func newSentinels(t *testing.T, number int, password string) *sentinels {
	t.Helper()
	master := testenv.LocalRedis(t)
	host, port, _ := strings.Cut(master.Addr(), ":")
	replica := testenv.LocalRedis(t, "--replicaof", host+" "+port)
	s := &sentinels{servers: map[string]*testenv.RedisServer{master.Addr(): master, replica.Addr(): replica}, password: password}
	for range number {
		s.addresses = append(s.addresses, startSentinel(t, master.Addr(), number/2+1, password))
	}
	// The Sentinels discover the replica and each other through the master.
	harness.Eventually(t, within, func() string {
		for _, address := range s.addresses {
			c := s.client(t, address)
			replicas, err := c.Replicas(t.Context(), watched).Result()
			if err != nil || len(replicas) != 1 || replicas[0]["master-link-status"] != "ok" {
				return fmt.Sprintf("Sentinel %s knows these replicas: %v (%v)", address, replicas, err)
			}
			others, err := c.Sentinels(t.Context(), watched).Result()
			if err != nil || len(others) != number-1 {
				return fmt.Sprintf("Sentinel %s knows these others: %v (%v)", address, others, err)
			}
		}
		return ""
	})
	return s
}

func startSentinel(t *testing.T, master string, quorum int, password string) string {
	t.Helper()
	var lines []string
	if password != "" {
		lines = append(lines, "requirepass "+password, "sentinel sentinel-pass "+password,
			"user standings on >"+secret+" -@all "+strings.Join(leastRights(t, "Sentinel"), " "))
	}
	return harness.StartSentinel(t, watched, master, quorum, lines...)
}

func (s *sentinels) client(t *testing.T, address string) *redis.SentinelClient {
	t.Helper()
	c := redis.NewSentinelClient(&redis.Options{Addr: address, Password: s.password, MaxRetries: -1})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// master returns the server that the Sentinels name, and the other one.
func (s *sentinels) master(t *testing.T) (master, other *testenv.RedisServer) {
	t.Helper()
	at, err := s.client(t, s.addresses[0]).GetMasterAddrByName(t.Context(), watched).Result()
	harness.Must(t, err)
	for address, server := range s.servers {
		if address == strings.Join(at, ":") {
			master = server
		} else {
			other = server
		}
	}
	if master == nil {
		t.Fatalf("the Sentinels name %v", at)
	}
	return master, other
}

// failOver makes a Sentinel promote the replica. The Sentinel refuses until it has heard from the replica
// recently.
func (s *sentinels) failOver(t *testing.T) {
	t.Helper()
	harness.Eventually(t, within, func() string {
		if err := s.client(t, s.addresses[0]).Failover(t.Context(), watched).Err(); err != nil {
			return "the Sentinel doesn't fail over: " + err.Error()
		}
		return ""
	})
}

// awaitMaster waits until the Sentinels name a server as the master, and the server has that role.
func (s *sentinels) awaitMaster(t *testing.T, server *testenv.RedisServer) {
	t.Helper()
	began := time.Now()
	c := server.Client(t)
	harness.Eventually(t, within, func() string {
		if master, _ := s.master(t); master != server {
			return "the Sentinels still name " + master.Addr()
		}
		if info := c.Info(t.Context(), "replication").Val(); !strings.Contains(info, "role:master") {
			return server.Addr() + " isn't a master yet"
		}
		return ""
	})
	t.Logf("%s is the master after %v", server.Addr(), time.Since(began).Round(time.Millisecond))
}

func (s *sentinels) settings(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{"redis.addresses": strings.Join(s.addresses, ","), "redis.sentinel.master": watched}
	if s.password != "" {
		all["redis.sentinel.username"], all["redis.sentinel.password_file"] = "standings", secretFile(t, secret)
	}
	return all
}

// look returns a client that follows the master.
func (s *sentinels) look(t *testing.T) redis.UniversalClient {
	t.Helper()
	c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: watched, SentinelAddrs: s.addresses, SentinelPassword: s.password})
	t.Cleanup(func() { harness.Must(t, c.Close()) })
	return c
}

func TestFailoversBySentinelsLoseNothingAndCountNothingTwice(t *testing.T) {
	t.Parallel()
	s := newSentinels(t, 3, "hunter3")
	place := newPlace(t, s.look(t), s.settings(t))
	maps.Copy(place.Settings, as("standings"))
	for _, server := range s.servers {
		user(t, server.Client(t), "standings", place.Prefix, leastRights(t, "consumer")...)
	}
	place.Start(t)
	place.Publish(t, earned(1, 1000)...)
	place.AwaitCaughtUp(t, within)
	api := place.Serve(t)
	awaitPage(t, place, api)

	t.Log("an orderly failover under traffic")
	stop := place.Traffic(t, 2).Stop
	_, next := s.master(t)
	s.failOver(t)
	s.awaitMaster(t, next)
	stop()
	place.AwaitCaughtUp(t, within)
	reads(t, place)
	awaitPage(t, place, api)

	t.Log("the master dies under traffic")
	master, next := s.settled(t)
	stop = place.Traffic(t, 2).Stop
	master.Kill()
	s.awaitMaster(t, next)
	stop()
	place.AwaitCaughtUp(t, within)
	awaitPage(t, place, api)
	master.Start()                                                                      // it is told that it is no longer the master
	user(t, master.Client(t), "standings", place.Prefix, leastRights(t, "consumer")...) // it has no file of users

	t.Log("the master dies, and its replica was behind")
	master, next = s.settled(t)
	place.AwaitCaughtUp(t, within)
	harness.Must(t, next.Client(t).ReplicaOf(t.Context(), "127.0.0.1", "1").Err())
	place.Publish(t, earned(2, 1000)...)
	place.AwaitCaughtUp(t, within)
	counted, err := next.Client(t).HGetAll(t.Context(), place.Key("ledger")).Result()
	harness.Must(t, err)
	for partition, position := range place.Ledger(t) {
		if counted[fmt.Sprintf("%s/%d", place.Topic, partition)] == position {
			t.Errorf("the replica isn't behind in partition %d: %s", partition, position)
		}
	}
	master.Kill()
	s.awaitMaster(t, next)
	place.Finish(t)
	for _, address := range s.addresses {
		c := redis.NewClient(&redis.Options{Addr: address, Password: s.password})
		nothingRefused(t, c)
		harness.Must(t, c.Close())
	}
}

// settled waits until all Sentinels name one server, and the other server follows it. A server that starts again
// first believes that it is the master, and a master that was slow to answer may have been replaced meanwhile.
// settled therefore reads both again in each attempt.
func (s *sentinels) settled(t *testing.T) (master, other *testenv.RedisServer) {
	t.Helper()
	harness.Eventually(t, within, func() string {
		master, other = s.master(t)
		for _, address := range s.addresses {
			at, err := s.client(t, address).GetMasterAddrByName(t.Context(), watched).Result()
			if err != nil || strings.Join(at, ":") != master.Addr() {
				return fmt.Sprintf("Sentinel %s names %v (%v), Sentinel %s %s", address, at, err, s.addresses[0], master.Addr())
			}
		}
		return follows(t, master, other)
	})
	return master, other
}

// followed waits until a replica is connected to its master.
func followed(t *testing.T, master, replica *testenv.RedisServer) {
	t.Helper()
	harness.Eventually(t, within, func() string { return follows(t, master, replica) })
}

// follows returns "" if a replica is connected to its master, and otherwise the reason.
func follows(t *testing.T, master, replica *testenv.RedisServer) string {
	t.Helper()
	host, port, _ := strings.Cut(master.Addr(), ":")
	info := replica.Client(t).Info(t.Context(), "replication").Val()
	if !strings.Contains(info, "master_link_status:up") || !strings.Contains(info, "master_port:"+port) || !strings.Contains(info, "master_host:"+host) {
		return "the replica doesn't follow yet: " + info
	}
	return ""
}

func TestAConsumerWaitsForSentinelsAndAMasterThatAreNotThereYet(t *testing.T) {
	t.Parallel()
	s := newSentinels(t, 1, "")
	place := newPlace(t, s.look(t), s.settings(t))
	for _, server := range s.servers { // so that neither replaces the other
		server.Kill()
	}
	c := place.Start(t)
	c.Log.Await(t, within, "waiting for Redis")
	for _, server := range s.servers {
		server.Start()
	}
	place.Publish(t, earned(3, 500)...)
	place.Finish(t)
}
