package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/standings/standings/cmd/consumer/cli"
	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/test/clitest"
)

func TestConfigExitsWithTwoAndOneLineAProblem(t *testing.T) {
	code, stdout, stderr := execute(t, []string{"STANDINGS_ON_GAP=x", "STANDINGS_START=y", "STANDINGS_BORDS=z"}, "config")
	if code != 2 || stdout != "" || strings.Count(stderr, "\n") != 3 || strings.Count(stderr, "consumer: ") != 3 {
		t.Errorf("code %d\n%s%s", code, stdout, stderr)
	}
	for name, file := range map[string]string{"absent": filepath.Join(t.TempDir(), "absent.yaml"), "not YAML": clitest.Config(t, "a: [\nb: :")} {
		code, _, stderr = execute(t, nil, "config", "--config", file)
		if code != 2 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, file) {
			t.Errorf("%s file: code %d: %s", name, code, stderr)
		}
	}
}

func TestConfigShowsWhatTheLayoutsComeTo(t *testing.T) {
	_, stdout, _ := execute(t, nil, "config")
	fields := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	for _, want := range []string{
		"weekly readable 26 10ms -99999999 to 99999999 to 10ms 60d",
		"monthly readable 26 41ms", "yearly readable 26 472ms"} {
		if !strings.Contains(fields(stdout), want) {
			t.Errorf("%q isn't in\n%s", want, stdout)
		}
	}
	_, stdout, _ = execute(t, []string{"STANDINGS_MAX_POINTS=999999999999"}, "config")
	if strings.Count(stdout, "warning: ") != 3 || !strings.Contains(stdout, "set periods.yearly.layout to wide") {
		t.Errorf("coarse ticks get no warning:\n%s", stdout)
	}
}

func TestConfigAsJSONHasTheSameValues(t *testing.T) {
	_, stdout, _ := execute(t, []string{"STANDINGS_CONFIG=" + clitest.Config(t, "lateness: 35d"), "STANDINGS_LOG_LEVEL=warn"}, "config", "--json")
	var got struct {
		Settings []struct {
			Key, Value, From, Environment string
			Name                          *string
		}
		Layouts  []config.LayoutReport
		Warnings []string
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	all, err := config.Load("", nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Settings) != len(all.Settings) || len(got.Layouts) != 3 || got.Warnings == nil {
		t.Errorf("%d settings, %d layouts, warnings %v", len(got.Settings), len(got.Layouts), got.Warnings)
	}
	for _, s := range got.Settings {
		if s.Key == "lateness" && (s.Value != "35d" || s.Name == nil || s.From != "file" || s.Environment != "STANDINGS_LATENESS") {
			t.Errorf("lateness: %+v", s)
		}
		if s.Key == "log.level" && (s.Value != "warn" || s.From != "environment" || s.Name == nil || *s.Name != s.Environment) {
			t.Errorf("log.level: %+v", s)
		}
	}
}

func TestNoFormOfTheConfigurationShowsASecret(t *testing.T) {
	const secret = "hunter2"
	for _, args := range [][]string{{"config"}, {"config", "--json"}} {
		for _, variable := range []string{"STANDINGS_REDIS_PASSWORD=" + secret, "STANDINGS_REDIS_PASSWORD_FILE=" + clitest.Config(t, secret)} {
			code, out, errs := execute(t, []string{variable}, args...)
			if code != cli.ExitOK || strings.Contains(out+errs, secret) || !strings.Contains(out, "(hidden)") {
				t.Errorf("%v with %s: exit code %d\n%s%s", args, variable, code, out, errs)
			}
		}
	}
}
