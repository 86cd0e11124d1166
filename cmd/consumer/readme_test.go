package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// The configuration table in the README is what the program says of itself.
// UPDATE_README=1 writes it.
func TestTheREADMEsConfigurationTableIsTheProgramsOwn(t *testing.T) {
	const path, begin, end = "../../README.md", "<!-- consumer config --markdown -->\n", "<!-- end -->"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	if err := writeMarkdown(&table); err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	if !ok {
		t.Fatalf("README.md has no line %q", begin)
	}
	shown, after, ok := strings.Cut(rest, end)
	if !ok {
		t.Fatalf("README.md has no line %q", end)
	}
	if shown == table.String() {
		return
	}
	if os.Getenv("UPDATE_README") == "" {
		t.Fatal("the table differs from `consumer config --markdown`: run this test with UPDATE_README=1")
	}
	if err := os.WriteFile(path, []byte(before+begin+table.String()+end+after), 0o644); err != nil { //nolint:gosec // a document
		t.Fatal(err)
	}
}
