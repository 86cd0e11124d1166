package model

import (
	"strings"
	"testing"
)

// holds searches a space, in which nothing may happen that must not.
func holds[S comparable](t *testing.T, sp space[S]) {
	t.Helper()
	f, v := search(sp)
	if v != nil {
		t.Fatalf("%s, after %d states:\n  %s", v.what, v.after, strings.Join(v.story, "\n  "))
	}
	t.Log(f)
}

// fails searches a space that lacks a rule, and has to find what that is for.
func fails[S comparable](t *testing.T, sp space[S]) {
	t.Helper()
	f, v := search(sp)
	if v == nil {
		t.Fatalf("nobody notices: %v", f)
	}
	t.Logf("%s, after %d states:\n  %s", v.what, v.after, strings.Join(v.story, "\n  "))
}
