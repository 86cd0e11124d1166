package harness

// Consumers whose clocks are wrong. Nothing of the consumer knows of it: it is built with another time.Now,
// which adds what a variable of the environment says. Time that goes by isn't changed: timeouts, tickers
// and leases are by the monotonic clock.

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// clockVariable is by how much the clock of a process is ahead, as time.ParseDuration reads it; less than
// nothing: behind.
const clockVariable = "TEST_CLOCK_AHEAD"

// UseClocks has the consumer of this test process built so that its clock can be wrong. It comes before any
// consumer is needed. All of it is compiled anew, which takes a minute and a half on two cores with an empty
// cache of Go's, and nothing once it is there.
func UseClocks() { built.clocks = true }

// StartAhead starts a consumer whose clock is ahead by so much, to the second; less than nothing: behind. It
// takes UseClocks. A consumer that BinaryVariable names has the right time, unless it is built so, too.
func (p *Place) StartAhead(t testing.TB, ahead time.Duration) *Consumer {
	t.Helper()
	return p.start(t, p.Settings, clockVariable+"="+ahead.String())
}

// What is replaced of time.Now, and what becomes of it.
const (
	rightNow = "	sec, nsec, mono := runtimeNow()\n	if mono == 0 {\n"
	aheadNow = "	sec, nsec, mono := runtimeNow()\n	sec += ahead\n	if mono == 0 {\n"
)

// aheadFile is beside it in the package time.
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

// overlay writes what go build takes in place of files of the package time, into a directory, and returns
// its path.
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
