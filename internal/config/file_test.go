package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAMisspeltKeyIsReportedWithItsLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "standings.yaml")
	text := "# a comment\nkafka:\n  brokers: [a:1]\n  topcis: [points]\n\nredis: 5\nlatness: 1h\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(path, nil)
	if err == nil {
		t.Fatal("it is taken")
	}
	for _, want := range []string{
		"kafka.topcis: unknown setting; did you mean kafka.topics? (file " + path + ", line 4)",
		"redis: is a value, but must be a section (file " + path + ", line 6)",
		"latness: unknown setting; did you mean lateness? (file " + path + ", line 7)",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q isn't in\n%v", want, err)
		}
	}
}
