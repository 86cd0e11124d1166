package model

import (
	"strings"
	"testing"
)

// holds searches a space and fails the test on a violation.
func holds[S comparable](t *testing.T, sp space[S]) {
	t.Helper()
	f, v := search(sp)
	if v != nil {
		t.Fatalf("%s, after %d states:\n  %s", v.what, v.after, strings.Join(v.story, "\n  "))
	}
	t.Log(f)
}

// fails searches a space with a broken rule and fails the test unless it finds a violation.
func fails[S comparable](t *testing.T, sp space[S]) {
	t.Helper()
	f, v := search(sp)
	if v == nil {
		t.Fatalf("nobody notices: %v", f)
	}
	t.Logf("%s, after %d states:\n  %s", v.what, v.after, strings.Join(v.story, "\n  "))
}
