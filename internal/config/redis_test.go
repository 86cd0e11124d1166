package config

import (
	"strings"
	"testing"
)

func TestOneServerAClusterAndSentinelsAreToldApart(t *testing.T) {
	for _, c := range []struct{ yaml, key, says string }{
		{"{addresses: [a:1, b:1], db: 3}", "redis.db", "must be 0 for a cluster (several redis.addresses)"},
		{"{cluster: true, db: 3}", "redis.db", "must be 0 for a cluster"},
		{"{cluster: true, sentinel: {master: m}}", "redis.cluster", "exclude each other"},
		{"{sentinel: {username: u}}", "redis.sentinel.username", "requires redis.sentinel.master"},
		{"{sentinel: {password: p}}", "redis.sentinel.password", "requires redis.sentinel.master"},
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
