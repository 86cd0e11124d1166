// Package docs is documents, and the test that what they name exists.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// sources is all Go text of the repository.
func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != ".." && strings.HasPrefix(entry.Name(), ".") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func TestEverythingThatTheGuaranteesNameExists(t *testing.T) {
	code := sources(t)
	files, tests, functions := named(t, "guarantees.md", code)
	if files < 15 || tests < 60 || functions < 8 {
		t.Errorf("only %d files, %d tests and %d functions were found: the patterns are wrong", files, tests, functions)
	}
	files, _, functions = named(t, "architecture.md", code)
	if files < 40 || functions < 2 {
		t.Errorf("only %d files and %d functions were found in architecture.md: the patterns are wrong", files, functions)
	}
}

// named counts the files, tests and functions that a document names. Each has to exist.
func named(t *testing.T, document, code string) (files, tests, functions int) {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	file := regexp.MustCompile(`^[a-z][\w./-]*/[\w.-]+$`)
	test := regexp.MustCompile(`^(Test|Fuzz)[A-Z]\w+$`)
	function := regexp.MustCompile(`^(\w+)\(\)$`)
	for _, quoted := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(string(text), -1) {
		name := quoted[1]
		switch {
		case test.MatchString(name):
			tests++
			if !strings.Contains(code, "\nfunc "+name+"(") {
				t.Errorf("%s: there is no test %s", document, name)
			}
		case function.MatchString(name):
			functions++
			bare := function.FindStringSubmatch(name)[1]
			if !regexp.MustCompile(`\nfunc (\([^)\n]+\) )?` + bare + `\(`).MatchString(code) {
				t.Errorf("%s: there is no function %s", document, bare)
			}
		case file.MatchString(name):
			files++
			if _, err := os.Stat(filepath.Join("..", name)); err != nil {
				t.Errorf("%s: there is no file %s", document, name)
			}
		}
	}
	return files, tests, functions
}
