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
		{"seal: true\narchive: {url: 'mysql://db/archive'}", "must be sqlite:path or postgres://"},
		{"seal: true\narchive: {url: '/var/lib/archive.db'}", "must be sqlite:path or postgres://"},
		{"archive: {url: 'sqlite:a.db'}", "since only final windows are archived"},
	} {
		found := problems(t, c.yaml)
		if p := found["archive.url"]; c.says != "" && (p == nil || !strings.Contains(p.Error(), c.says)) || len(found) > 1 || c.says == "" && len(found) > 0 {
			t.Errorf("%s: %v", c.yaml, found)
		}
	}
}

func TestBackupsHaveAnIntervalAndSomewhereToBe(t *testing.T) {
	for _, c := range []struct{ yaml, says string }{
		{"seal: true\narchive: {url: 'sqlite:a.db'}", ""},
		{"seal: true\narchive: {url: 'sqlite:a.db', interval: 0s}", ""},
		{"seal: true\narchive: {url: 'sqlite:a.db', interval: 6h}", ""},
		{"archive: {interval: 0s}", ""},
		{"archive: {interval: 6h}", "requires archive.url"},
		{"seal: true\narchive: {url: 'sqlite:a.db', interval: 30s}", "at least a minute"},
		{"seal: true\narchive: {url: 'sqlite:a.db', interval: often}", "duration"},
	} {
		found := problems(t, c.yaml)
		if p := found["archive.interval"]; c.says != "" && (p == nil || !strings.Contains(p.Error(), c.says)) || len(found) > 1 || c.says == "" && len(found) > 0 {
			t.Errorf("%s: %v", c.yaml, found)
		}
	}
}
