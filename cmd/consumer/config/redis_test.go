package config

import (
	"strings"
	"testing"
)

func TestOneServerAClusterAndSentinelsAreToldApart(t *testing.T) {
	for _, c := range []struct{ yaml, key, says string }{
		{"{addresses: [a:1, b:1], db: 3}", "redis.db", "there are several redis.addresses, and a cluster has no other"},
		{"{cluster: true, db: 3}", "redis.db", "redis.cluster is set, and a cluster has no other"},
		{"{cluster: true, sentinel: {master: m}}", "redis.cluster", "is set beside redis.sentinel.master"},
		{"{sentinel: {username: u}}", "redis.sentinel.username", "is set, but redis.sentinel.master isn't"},
		{"{sentinel: {password: p}}", "redis.sentinel.password", "is set, but redis.sentinel.master isn't"},
		{"{addresses: [a:1, b:1], db: 3, sentinel: {master: m, username: u, password: p}}", "", ""},
		{"{addresses: [a:1, b:1]}", "", ""},
		{"{cluster: true}", "", ""},
	} {
		found := problems(t, "redis: "+c.yaml)
		if c.key == "" {
			if len(found) != 0 {
				t.Errorf("%s: %v", c.yaml, found)
			}
			continue
		}
		if p := found[c.key]; p == nil || !strings.Contains(p.Error(), c.says) || len(found) != 1 {
			t.Errorf("%s: %v", c.yaml, found)
		}
	}
}

func TestReplicasAreReadWhereTheyCanBeFound(t *testing.T) {
	for _, c := range []struct{ yaml, key, says string }{
		{"api: {read_from: replica}", "api.read_from", "doesn't say where its replicas can be reached: set api.replicas"},
		{"api: {replicas: [b:1]}", "api.replicas", "api.read_from isn't replica"},
		{"api: {read_from: replica, replicas: [b:1]}\nredis: {cluster: true}", "api.replicas", "Sentinels and clusters know their replicas"},
		{"api: {read_from: replica, replicas: [b:1]}\nredis: {sentinel: {master: m}}", "api.replicas", "Sentinels and clusters know their replicas"},
		{"api: {read_from: replica, replicas: [b:1, a:1]}\nredis: {addresses: [a:1]}", "api.replicas", "which is the master"},
		{"api: {read_from: slave}", "api.read_from", "isn't one of master, replica"},
		{"api: {read_from: replica, replicas: [b:1, c:1]}", "", ""},
		{"api: {read_from: replica}\nredis: {addresses: [a:1, b:1]}", "", ""},
		{"api: {read_from: replica}\nredis: {sentinel: {master: m}}", "", ""},
	} {
		found := problems(t, c.yaml)
		if p := found[c.key]; c.key != "" && (p == nil || !strings.Contains(p.Error(), c.says)) || len(found) > 1 || c.key == "" && len(found) > 0 {
			t.Errorf("%s: %v", c.yaml, found)
		}
	}
}

func TestRedisIsNamedAsItIsConfigured(t *testing.T) {
	for want, c := range map[string]Redis{
		"Redis at a:1":                          {Addresses: []string{"a:1"}},
		"Redis Cluster at a:1":                  {Addresses: []string{"a:1"}, Cluster: true},
		"Redis Cluster at a:1, b:1":             {Addresses: []string{"a:1", "b:1"}},
		"Redis lb of the Sentinels at a:1, b:1": {Addresses: []string{"a:1", "b:1"}, Sentinel: Sentinel{Master: "lb"}},
	} {
		if got := c.Name(); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
