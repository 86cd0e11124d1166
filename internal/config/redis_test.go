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
