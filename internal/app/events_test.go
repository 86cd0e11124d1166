package app

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/standings/standings/internal/config"
	"github.com/standings/standings/internal/ingest/event"
)

// exampleTime is the time of the examples. The time of their records is 100 ms later.
const exampleTime = 1795248930123

// decodeExample decodes a record under a configuration, with the code of `consumer run`.
func decodeExample(t *testing.T, text, value string, headers [][2]string) event.Event {
	t.Helper()
	l, err := config.Load(writeConfig(t, text), nil)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := CountingOf(l.Config)
	if err != nil {
		t.Fatal(err)
	}
	var h event.Headers
	for _, header := range headers {
		h.Note([]byte(header[0]), []byte(header[1]))
	}
	var e event.Event
	if bad := event.NewDecoder(rules.Events).DecodeWith(&h, []byte(value), exampleTime+100, &e); bad != nil {
		t.Fatalf("%s: %v", value, bad)
	}
	return e
}

// Every JSON event counts by itself, or under the configuration that follows it.
func TestTheEventsInDocumentsCountUnderTheConfigurationBesideThem(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```json\n(.*?)```\n(?:[^`]*```yaml\n(.*?)```)?")
	for path, want := range map[string]int{"../../README.md": 1, "../../docs/events.md": 2} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found := blocks.FindAllStringSubmatch(string(text), -1)
		if len(found) != want {
			t.Errorf("%s has %d examples in JSON, want %d", path, len(found), want)
		}
		for _, block := range found {
			e := decodeExample(t, block[2], block[1], nil)
			if string(e.User) != "u42" || e.Points != 25 || e.Time != exampleTime || string(bytes.Join(e.Boards, nil)) != "eu" {
				t.Errorf("%s: %s comes to %s %d at %d on %s", path, block[1], e.User, e.Points, e.Time, e.Boards)
			}
		}
	}
}

// Events that the commands in the documents publish count, CloudEvents with their own time.
func TestTheCommandsInDocumentsPublishEventsThatCount(t *testing.T) {
	command := regexp.MustCompile(`echo '([^']*)' \|\s+(?:kcat [^\n]* -P|bin/consumer produce )[^\n]*`)
	header := regexp.MustCompile(`-H (?:'([^=']*)=([^']*)'|([^=\s]*)=(\S*))`)
	cloudEvents := 0
	paths, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(paths, "../../README.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range command.FindAllStringSubmatch(strings.ReplaceAll(string(text), "\\\n", ""), -1) {
			var headers [][2]string
			for _, h := range header.FindAllStringSubmatch(m[0], -1) {
				headers = append(headers, [2]string{h[1] + h[3], h[2] + h[4]})
			}
			e := decodeExample(t, "", m[1], headers)
			want := int64(exampleTime + 100)
			if len(headers) > 0 {
				cloudEvents++
				want = exampleTime - 123
			}
			if string(e.User) != "u42" || e.Points != 25 || e.Time != want {
				t.Errorf("%s: %s comes to %s %d at %d", path, m[0], e.User, e.Points, e.Time)
			}
		}
	}
	if cloudEvents != 2 {
		t.Errorf("%d commands publish CloudEvents, want 2", cloudEvents)
	}
}
