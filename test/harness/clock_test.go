package harness

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The text to replace must exist in every Go version.
func TestTheClockOfThisGoCanBeReplaced(t *testing.T) {
	t.Parallel()
	goroot, err := goEnv("GOROOT")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := overlay(goroot, dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "time.go"))
	if err != nil || !strings.Contains(string(text), aheadNow) {
		t.Errorf("the copy of time.go doesn't add to the time (%v)", err)
	}
}

func TestAGoWhoseClockCannotBeReplacedIsAnError(t *testing.T) {
	t.Parallel()
	goroot := t.TempDir()
	if err := os.MkdirAll(filepath.Join(goroot, "src", "time"), 0o700); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"package time\n\nfunc Now() Time { return another() }\n": "0 times what is to be replaced",
		rightNow + rightNow: "2 times what is to be replaced",
	} {
		if err := os.WriteFile(filepath.Join(goroot, "src", "time", "time.go"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := overlay(goroot, t.TempDir()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error that says %q", err, want)
		}
	}
	if _, err := overlay(filepath.Join(goroot, "nowhere"), t.TempDir()); err == nil {
		t.Error("no error where there is no time.go")
	}
}
