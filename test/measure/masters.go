package main

// Redis Clusters of several masters without replicas, as child processes.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/standings/standings/internal/embedded"
)

// slots is the number of slots of a cluster.
const slots = 16384

// masters are the servers of a cluster, each with an equal share of the slots.
type masters struct {
	servers []*embedded.RedisServer
	each    []*redis.Client
	whole   *redis.ClusterClient
}

// startMasters starts n masters, and returns once each of them knows all.
func startMasters(ctx context.Context, n int) (_ *masters, err error) {
	program := os.Getenv("STANDINGS_TEST_REDIS_SERVER")
	if program == "" {
		program = embedded.RedisServers[0]
	}
	if program, err = exec.LookPath(program); err != nil {
		return nil, fmt.Errorf("a Redis to start %d masters of: %w", n, err)
	}
	all := &masters{}
	defer func() {
		if err != nil {
			all.stop()
		}
	}()
	for range n {
		server, err := embedded.StartRedisServer(ctx, embedded.RedisOptions{Program: program, Args: []string{"--cluster-enabled", "yes"}})
		if err != nil {
			return nil, fmt.Errorf("start a master: %w", err)
		}
		all.servers = append(all.servers, server)
		all.each = append(all.each, redis.NewClient(&redis.Options{Addr: server.Address}))
	}
	if err := all.meet(ctx); err != nil {
		return nil, fmt.Errorf("make a cluster of %d masters: %w", n, err)
	}
	all.whole = redis.NewClusterClient(&redis.ClusterOptions{Addrs: all.addresses()})
	return all, nil
}

// meet joins the servers into a cluster.
func (m *masters) meet(ctx context.Context) error {
	for i, c := range m.each {
		first, last := i*slots/len(m.each), (i+1)*slots/len(m.each)-1
		if err := c.ClusterAddSlotsRange(ctx, first, last).Err(); err != nil {
			return err
		}
		host, port, err := net.SplitHostPort(m.servers[i].Address)
		if err != nil {
			return err
		}
		if err := m.each[0].ClusterMeet(ctx, host, port).Err(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	known := fmt.Sprintf("cluster_known_nodes:%d\r\n", len(m.each))
	return until(ctx, func() (bool, error) {
		for _, c := range m.each {
			info, err := c.ClusterInfo(ctx).Result()
			if err != nil || !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, known) {
				return false, err
			}
		}
		return true, nil
	})
}

func (m *masters) addresses() []string {
	var all []string
	for _, s := range m.servers {
		all = append(all, s.Address)
	}
	return all
}

// flush empties all masters, so that a run does not find data of an earlier one.
func (m *masters) flush(ctx context.Context) error {
	for _, c := range m.each {
		if err := c.FlushAll(ctx).Err(); err != nil {
			return fmt.Errorf("empty a master: %w", err)
		}
	}
	return nil
}

func (m *masters) stop() {
	if m.whole != nil {
		_ = m.whole.Close() // its servers end with it
	}
	for _, c := range m.each {
		_ = c.Close()
	}
	for _, s := range m.servers {
		s.Close()
	}
}

// work is the work of a server so far.
type work struct {
	seconds float64 // processor time
	calls   float64 // script calls
}

// worked returns the work of each server so far.
func worked(ctx context.Context, servers []*redis.Client) ([]work, error) {
	all := make([]work, len(servers))
	for i, c := range servers {
		info, err := c.InfoMap(ctx, "cpu", "commandstats").Result()
		if err != nil {
			return nil, fmt.Errorf("read what Redis has done: %w", err)
		}
		for name, to := range map[string]*float64{"used_cpu_sys": &all[i].seconds, "used_cpu_user": &all[i].seconds, "cmdstat_evalsha": &all[i].calls, "cmdstat_eval": &all[i].calls} {
			for _, section := range info {
				if err := add(to, section[name]); err != nil {
					return nil, fmt.Errorf("%s of Redis: %w", name, err)
				}
			}
		}
	}
	return all, nil
}

// add adds a number in INFO's format: 1.5, or calls=3,usec=… An empty text adds nothing.
func add(to *float64, text string) error {
	if text == "" {
		return nil
	}
	text, _, _ = strings.Cut(strings.TrimPrefix(text, "calls="), ",")
	n, err := strconv.ParseFloat(text, 64)
	*to += n
	return err
}

// since returns the work between two times, of all servers together and of the busiest one.
func since(before, after []work) (all, busiest work, err error) {
	if len(before) != len(after) {
		return work{}, work{}, errors.New("other servers than before")
	}
	for i := range after {
		one := work{after[i].seconds - before[i].seconds, after[i].calls - before[i].calls}
		all.seconds += one.seconds
		all.calls += one.calls
		if one.seconds > busiest.seconds {
			busiest = one
		}
	}
	return all, busiest, nil
}
