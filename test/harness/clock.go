package harness

// This file runs consumers whose clocks are wrong. The consumer itself does not know: it is built with
// another time.Now, which adds an offset from an environment variable. Elapsed time does not change:
// timeouts, tickers and leases use the monotonic clock.

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// clockVariable is the offset of a process's clock, in the format of time.ParseDuration; a negative offset
// means behind.
const clockVariable = "TEST_CLOCK_AHEAD"

// UseClocks makes this test process build the consumer with a clock that can be wrong. It must be called
// before the first consumer is needed. Everything is compiled again, which takes a minute and a half on two
// cores with an empty Go cache.
func UseClocks() { built.clocks = true }

// StartAhead starts a consumer whose clock is ahead by a duration, in whole seconds; a negative duration
// means behind. It requires UseClocks. A consumer from BinaryVariable has the right time, unless it is
// built in the same way.
func (p *Place) StartAhead(t testing.TB, ahead time.Duration) *Consumer {
	t.Helper()
	return p.start(t, p.Settings, clockVariable+"="+ahead.String())
}

// The part of time.Now that is replaced, and its replacement.
const (
	rightNow = "	sec, nsec, mono := runtimeNow()\n	if mono == 0 {\n"
	aheadNow = "	sec, nsec, mono := runtimeNow()\n	sec += ahead\n	if mono == 0 {\n"
)

// aheadFile is added to the package time.
const aheadFile = `package time

import "syscall"

// ahead is by how much the clock of this process is ahead, s.
var ahead = readAhead()

func readAhead() int64 {
	text, found := syscall.Getenv("` + clockVariable + `")
	if !found {
		return 0
	}
	d, err := ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return int64(d / Second)
}
`

// overlay writes the overlay file for go build, and the files that replace those of the package time, to a
// directory. It returns the overlay's path.
func overlay(goroot, dir string) (string, error) {
	from := filepath.Join(goroot, "src", "time")
	text, err := os.ReadFile(filepath.Join(from, "time.go"))
	if err != nil {
		return "", fmt.Errorf("a clock that can be wrong: %w", err)
	}
	if n := strings.Count(string(text), rightNow); n != 1 {
		return "", fmt.Errorf("a clock that can be wrong: time.go of %s has %d times what is to be replaced, and not once:\n%s", goroot, n, rightNow)
	}
	files := map[string]string{"time.go": strings.Replace(string(text), rightNow, aheadNow, 1), "ahead.go": aheadFile}
	replaced := map[string]string{}
	for name, text := range files {
		replaced[filepath.Join(from, name)] = filepath.Join(dir, name)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return "", fmt.Errorf("a clock that can be wrong: %w", err)
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", fmt.Errorf("a clock that can be wrong: %w", err)
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, list, 0o600)
}
