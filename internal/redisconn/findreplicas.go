package redisconn

// Which masters there are, and which replicas each has: by the settings, the Sentinels or the
// cluster.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// group is a master and those that follow it.
type group struct {
	master   string
	replicas []string
	slots    []SlotRange // of a cluster's master; nil: all keys are its
}

func (r *Replicas) find(ctx context.Context) ([]group, error) {
	s := &r.config.Settings
	switch {
	case s.Master != "":
		return r.findBySentinels(ctx)
	case s.clustered():
		return r.findInCluster(ctx)
	}
	return []group{{master: s.Addresses[0], replicas: r.config.Replicas}}, nil
}

// findBySentinels asks one Sentinel after another until one knows.
func (r *Replicas) findBySentinels(ctx context.Context) ([]group, error) {
	s := &r.config.Settings
	if r.sentinels == nil {
		for _, address := range s.Addresses {
			r.sentinels = append(r.sentinels, s.sentinel(address))
		}
	}
	var failed error
	for i, c := range r.sentinels {
		g, err := askForReplicas(ctx, c, s.Master)
		if err == nil {
			return []group{g}, nil
		}
		said := fmt.Errorf("ask Sentinel %s for the replicas of %s: %w", s.Addresses[i], s.Master, NameRight(s.withoutPasswords(err), "", ""))
		if IsMissingRight(err) { // which waiting doesn't give
			return nil, said
		}
		if failed == nil {
			failed = said
		}
	}
	return nil, &noMasterError{failed}
}

func askForReplicas(ctx context.Context, c *redis.SentinelClient, master string) (g group, err error) {
	ctx, cancel := context.WithTimeout(ctx, askedWithin)
	defer cancel()
	at, err := c.GetMasterAddrByName(ctx, master).Result()
	if err != nil {
		return g, err
	}
	g.master = net.JoinHostPort(at[0], at[1])
	all, err := c.Replicas(ctx, master).Result()
	if err != nil {
		return g, err
	}
	for _, one := range all {
		if one["ip"] == "" || slices.Contains(strings.Split(one["flags"], ","), "s_down") {
			continue
		}
		if address := net.JoinHostPort(one["ip"], one["port"]); address != g.master {
			g.replicas = append(g.replicas, address)
		}
	}
	slices.Sort(g.replicas)
	return g, nil
}

// findInCluster asks one node after another until one knows: those that are known, then those of
// the settings.
func (r *Replicas) findInCluster(ctx context.Context) ([]group, error) {
	var nodes []string
	for _, g := range r.groups {
		nodes = append(append(nodes, g.master), g.replicas...)
	}
	var failed error
	for _, address := range append(nodes, r.config.Addresses...) {
		all, err := askForSlots(ctx, r.server(address))
		if err == nil && len(all) > 0 {
			return groupsOf(address, all), nil
		}
		if err == nil {
			err = errors.New("CLUSTERDOWN it knows no slots")
		}
		if failed == nil {
			failed = fmt.Errorf("ask %s which slots are where: %w", address, NameRight(err, "", ""))
		}
	}
	return nil, failed
}

func askForSlots(ctx context.Context, c *redis.Client) ([]redis.ClusterSlot, error) {
	ctx, cancel := context.WithTimeout(ctx, askedWithin)
	defer cancel()
	return c.ClusterSlots(ctx).Result() //nolint:staticcheck // CLUSTER SHARDS came with Redis 7.0, and 6.2 has to do
}

// groupsOf are the masters by what a node says.
func groupsOf(asked string, all []redis.ClusterSlot) []group {
	var groups []group
	for _, of := range all {
		if len(of.Nodes) == 0 {
			continue
		}
		var addresses []string
		for _, n := range of.Nodes {
			addresses = append(addresses, seenFrom(asked, n.Addr))
		}
		i := slices.IndexFunc(groups, func(g group) bool { return g.master == addresses[0] })
		if i < 0 {
			i = len(groups)
			groups = append(groups, group{master: addresses[0], replicas: addresses[1:]})
		}
		groups[i].slots = append(groups[i].slots, SlotRange{of.Start, of.End})
	}
	for _, g := range groups {
		slices.Sort(g.replicas)
		slices.SortFunc(g.slots, func(a, b SlotRange) int { return a.First - b.First })
	}
	return groups
}

// seenFrom is the address of a node as it can be dialled, where another node has said it: a node
// that doesn't know its own address, or knows it as its machine's own, is where it was reached, and
// one that has TLS alone is at the port that was reached.
func seenFrom(asked, address string) string {
	host, port, err := net.SplitHostPort(address)
	from, at, failed := net.SplitHostPort(asked)
	if err != nil || failed != nil {
		return address
	}
	own := func(host string) bool { ip := net.ParseIP(host); return ip != nil && ip.IsLoopback() }
	if host == "" || own(host) && !own(from) && from != "localhost" {
		host = from
	}
	if port == "0" {
		port = at
	}
	return net.JoinHostPort(host, port)
}

// server is a client of one server, for what it says of itself.
func (r *Replicas) server(address string) *redis.Client {
	c := r.servers[address]
	if c == nil {
		s := &r.config.Settings
		o := s.options().Simple()
		o.Addr, o.PoolSize, o.DB = address, 2, 0 // greet selects it
		c = redis.NewClient(o)
		c.AddHook(s.calls)
		c.AddHook(hidesPasswords{s})
		r.servers[address] = c
	}
	return c
}
