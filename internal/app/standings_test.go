package app

import (
	"errors"
	"strings"
	"testing"

	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ranking"
)

// schemaOf returns the schema of a configuration from the environment.
func schemaOf(t *testing.T, l *config.Loaded) string {
	t.Helper()
	all, err := NewBoards(l.Config, nil, "c")
	if err != nil {
		t.Fatal(err)
	}
	var differs *ranking.SchemaError
	if err := all.Shards()[0].CheckSchema("{}"); !errors.As(err, &differs) {
		t.Fatal(err)
	}
	return differs.Wanted
}

// A setting is marked as fixed if, and only if, another value of it results in another schema.
func TestTheSettingsThatCantBeChangedLaterAreThoseOfTheSchema(t *testing.T) {
	base := []string{}
	before, err := config.Load("", base)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range before.Settings {
		if strings.HasPrefix(s.Key, "periods.") && strings.HasSuffix(s.Key, ".enabled") { // layouts count only if enabled
			base = append(base, s.Variable()+"=true")
		}
	}
	if before, err = config.Load("", base); err != nil {
		t.Fatal(err)
	}
	was := schemaOf(t, before)
	marked := 0
	for i, s := range before.Settings {
		if s.Fixed {
			marked++
		}
		tried := false
		for _, other := range []string{"wide", "false", "true", "Europe/Berlin", "sunday", "other", "1000", "20", "65536", "3s", "2h", "70d", "127.0.0.1:9000", "127.0.0.1", "64MiB", "latest", "continue", "debug", "json", "1ms"} {
			after, err := config.Load("", append(base[:len(base):len(base)], s.Variable()+"="+other))
			if err != nil || after.Settings[i].Shown() == s.Shown() {
				continue
			}
			tried = true
			if changes := schemaOf(t, after) != was; changes != s.Fixed {
				t.Errorf("%s=%s: another schema: %t, marked: %t", s.Key, other, changes, s.Fixed)
			}
		}
		if s.Fixed && !tried {
			t.Errorf("no other value of %s was tried", s.Key)
		}
	}
	if marked < 4 {
		t.Errorf("only %d settings are marked", marked)
	}
}
