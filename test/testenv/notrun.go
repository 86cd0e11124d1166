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

// ListVariable has a run list every test that was not run, rather than how many there are
// for each reason.
const ListVariable = "STANDINGS_TEST_LIST"

// NotRun ends a test that this machine can't run, loudly: it is skipped with the reason,
// what is common to many of them before a colon, and is among those that make test counts
// at its end. Where real servers are demanded it fails.
func NotRun(t testing.TB, reason string) {
	t.Helper()
	if demandsReal() {
		t.Fatalf("real servers are demanded (%s=%s), but: %s", DemandVariable, os.Getenv(DemandVariable), reason)
	}
	notRun(t, reason)
}

// Slow leaves a test to make test-all: one that takes many seconds, and whose promise has
// a faster test too.
func Slow(t testing.TB) {
	t.Helper()
	if testing.Short() {
		notRun(t, "slow, left to make test-all")
	}
}

// SlowEmbedded leaves a test of thousands of script calls to a real Redis: an embedded one takes many times as long
// for each. make test-all runs it there too.
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

// report prints what the tests reported as not run: nothing is passed over.
func report(w io.Writer, list string) {
	text, err := os.ReadFile(list)
	if err != nil {
		return // nobody wrote one
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
