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
	text, err := os.ReadFile("guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	code := sources(t)
	file := regexp.MustCompile(`^[a-z][\w./-]*/[\w.-]+$`)
	test := regexp.MustCompile(`^(Test|Fuzz)[A-Z]\w+$`)
	function := regexp.MustCompile(`^(\w+)\(\)$`)
	files, tests, functions := 0, 0, 0
	for _, quoted := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(string(text), -1) {
		name := quoted[1]
		switch {
		case test.MatchString(name):
			tests++
			if !strings.Contains(code, "\nfunc "+name+"(") {
				t.Errorf("there is no test %s", name)
			}
		case function.MatchString(name):
			functions++
			bare := function.FindStringSubmatch(name)[1]
			if !regexp.MustCompile(`\nfunc (\([^)\n]+\) )?` + bare + `\(`).MatchString(code) {
				t.Errorf("there is no function %s", bare)
			}
		case file.MatchString(name):
			files++
			if _, err := os.Stat(filepath.Join("..", name)); err != nil {
				t.Errorf("there is no file %s", name)
			}
		}
	}
	if files < 15 || tests < 60 || functions < 8 {
		t.Errorf("only %d files, %d tests and %d functions were found: the patterns are wrong", files, tests, functions)
	}
	for _, link := range regexp.MustCompile(`\]\((#?)([^)#]+)(?:#[^)]*)?\)`).FindAllStringSubmatch(string(text), -1) {
		if link[1] == "" {
			if _, err := os.Stat(link[2]); err != nil {
				t.Errorf("a link leads nowhere: %s", link[2])
			}
		}
	}
}
