package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/standings/standings/internal/ingest/event"
)

// Every file and environment is either a valid configuration, or is refused with one line per problem that
// names its subject. A valid configuration is the same again if all of it is set by environment variables.
func FuzzAConfigurationIsValidOrSaysWhatIsWrong(f *testing.F) {
	for _, seed := range [][2]string{
		{"", ""},
		{"kafka: {brokers: [a:1, b:2], topics: points, sasl: {mechanism: plain, username: u, password: p}}\nredis:\n", "STANDINGS_KAFKA_GROUP=g\nSTANDINGS_FOLD_MEMORY=1GiB"},
		{"periods: {weekly: {layout: wide, retention: 9w}, daily: {enabled: true}}\nmax_points: 1e9\nlateness: 35d", "STANDINGS_TIME_ZONE=Europe/Berlin\nPATH=/bin"},
		{"kafka: {broker: x}\nredis: 5\nboards: [{a: b}]\nstart: 2026-11-21T00:00:00Z", "STANDINGS_ON_GAP=x\nSTANDINGS_BORDS=z"},
		{"redis: {addresses: [a:1, b:1], sentinel: {master: m, username: u}, db: 3}\nevent: {fields: {user_id: player.id}}", "STANDINGS_LISTEN=off"},
		{"a: [\nb: :", "STANDINGS_"},
		{"\"a\\nb\": 1\n1: 2\ntrue: {x: y}\n? [a]\n: b", "STANDINGS_A\x1b[2J=1"},
		{"<<: {a: 1}\nb: &x {c: *x}\n", "STANDINGS_KAFKA_TLS_ENABLED=true"},
	} {
		f.Add(seed[0], seed[1])
	}
	path := filepath.Join(f.TempDir(), "standings.yaml")
	f.Fuzz(func(t *testing.T, file, environment string) {
		if strings.Contains(file+strings.ToLower(environment), "_file") {
			return // do not read this machine's own files
		}
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		environ := strings.Split(environment, "\n")
		environ = slices.DeleteFunc(environ, func(pair string) bool { return strings.HasPrefix(pair, FileVariable+"=") })
		l, err := Load(path, environ)
		if err != nil {
			namesWhatIsWrong(t, err, path)
			return
		}
		if _, _, err := l.Config.Layouts(time.Unix(1_793_577_600, 0)); err != nil {
			t.Errorf("valid, and without layouts: %v", err)
		}
		if _, err := l.Config.Calendar(); err != nil {
			t.Errorf("valid, and without a calendar: %v", err)
		}
		if _, err := l.Config.Rules(); err != nil {
			t.Errorf("valid, and without rules of boards: %v", err)
		}
		if _, err := event.NewFields(l.Config.Fields, l.Config.Others...); err != nil {
			t.Errorf("valid, and without fields of events: %v", err)
		}
		var all []string
		for _, s := range l.Settings {
			all = append(all, s.Variable()+"="+s.value.text())
		}
		again, err := Load("", all)
		if err != nil || !reflect.DeepEqual(again.Config, l.Config) {
			t.Errorf("%q is valid, and set by environment it is %v\n%+v\n%+v", all, err, l.Config, again)
		}
	})
}

// A problem starts with a name, in quotes if it could be confused with other text.
var namesASetting = regexp.MustCompile(`^([^\s":]+|"([^"\\]|\\.)*"): `)

// namesWhatIsWrong checks that an operator can act on an error: one line per problem, which starts with a key,
// a variable or the file, and no control characters for a terminal.
func namesWhatIsWrong(t *testing.T, err error, path string) {
	t.Helper()
	if !errors.Is(err, ErrInvalid) {
		t.Fatalf("not a problem with the configuration: %v", err)
	}
	if strings.ContainsFunc(strings.ReplaceAll(err.Error(), "\n", ""), unicode.IsControl) {
		t.Errorf("a terminal would obey %q", err)
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || strings.HasPrefix(err.Error(), ErrInvalid.Error()) {
		if !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
			t.Errorf("a problem with the file itself: %q", err)
		}
		return
	}
	for _, problem := range joined.Unwrap() {
		s, ok := errors.AsType[*settingError](problem)
		if !ok || !namesASetting.MatchString(problem.Error()) || s.problem == "" || strings.Contains(problem.Error(), "\n") {
			t.Errorf("not a problem with a setting, in a line: %q", problem)
		}
	}
}
