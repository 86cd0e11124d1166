package config

import (
	"strings"
	"testing"
)

func TestAnArchiveIsOneThatCanBeOpenedAndHasSomethingToKeep(t *testing.T) {
	for _, c := range []struct{ yaml, says string }{
		{"seal: true\narchive: {url: 'sqlite:/var/lib/standings/archive.db'}", ""},
		{"seal: true\narchive: {url: 'postgres://standings@db/archive'}", ""},
		{"seal: true\narchive: {url: 'postgresql:///archive'}", ""},
		{"seal: true\narchive: {url: 'mysql://db/archive'}", "is neither sqlite:path nor postgres://"},
		{"seal: true\narchive: {url: '/var/lib/archive.db'}", "is neither sqlite:path nor postgres://"},
		{"archive: {url: 'sqlite:a.db'}", "only final ones are archived"},
	} {
		found := problems(t, c.yaml)
		if p := found["archive.url"]; c.says != "" && (p == nil || !strings.Contains(p.Error(), c.says)) || len(found) > 1 || c.says == "" && len(found) > 0 {
			t.Errorf("%s: %v", c.yaml, found)
		}
	}
}
