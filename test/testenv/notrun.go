package testenv

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// ListVariable makes a run list every test that was not run, instead of the number of tests for each
// reason.
const ListVariable = "STANDINGS_TEST_LIST"

// NotRun skips a test that this machine cannot run, and reports it: make test counts such tests at its end,
// grouped by the part of the reason before the first colon. If real servers are demanded, the test fails.
func NotRun(t testing.TB, reason string) {
	t.Helper()
	if demandsReal() {
		t.Fatalf("real servers are demanded (%s=%s), but: %s", DemandVariable, os.Getenv(DemandVariable), reason)
	}
	notRun(t, reason)
}

// Slow leaves a test to make test-all: a test that takes many seconds, and whose promise a faster test also
// checks.
func Slow(t testing.TB) {
	t.Helper()
	if testing.Short() {
		notRun(t, "slow, left to make test-all")
	}
}

// SlowEmbedded leaves a test with thousands of script calls to a real Redis, since an embedded Redis takes many
// times as long for each. make test-all also runs it on an embedded Redis.
func SlowEmbedded(t testing.TB) {
	t.Helper()
	if testing.Short() && Redis(t).Embedded() {
		notRun(t, "slow on an embedded Redis, left to a real one")
	}
}

func notRun(t testing.TB, reason string) {
	t.Helper()
	if list := os.Getenv(NotRunVariable); list != "" {
		line := fmt.Sprintf("%s %s: %s\n", testedPackage(), t.Name(), reason)
		if err := appendLine(list, line); err != nil {
			t.Fatalf("report a test that is not run: %v", err)
		}
	}
	t.Skip("NOT RUN: " + reason)
}

// report prints the tests that were reported as not run.
func report(w io.Writer, list string) {
	text, err := os.ReadFile(list)
	if err != nil {
		return // no test reported anything
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if os.Getenv(ListVariable) != "" {
		fmt.Fprintf(w, "\nNOT RUN: %d tests\n", len(lines))
		for _, line := range lines {
			fmt.Fprintf(w, "  %s\n", line)
		}
		fmt.Fprintln(w)
		return
	}
	fmt.Fprintf(w, "\nNOT RUN: %d tests (make test LIST=1 lists them)\n", len(lines))
	count := map[string]int{}
	for _, line := range lines {
		_, reason, _ := strings.Cut(line, ": ")
		reason, _, _ = strings.Cut(reason, ": ")
		count[reason]++
	}
	most := func(a, b string) int { return cmp.Or(count[b]-count[a], strings.Compare(a, b)) }
	for _, reason := range slices.SortedFunc(maps.Keys(count), most) {
		fmt.Fprintf(w, "  %4d  %s\n", count[reason], reason)
	}
	fmt.Fprintln(w)
}
