package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// listedFolders are the folders in the layout of CONTRIBUTING.md: an indented line is below the
// last one that isn't.
func listedFolders(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, layout, found := strings.Cut(string(text), "\n## Layout of the code\n")
	if !found {
		t.Fatal("CONTRIBUTING.md has no layout")
	}
	var all []string
	above := ""
	for _, m := range regexp.MustCompile(`(?m)^    (  )?((?:[\w/]+/ )+)`).FindAllStringSubmatch(layout, -1) {
		for _, name := range strings.Fields(m[2]) {
			path := strings.TrimSuffix(name, "/")
			if m[1] == "" {
				above = path
			} else {
				path = above + "/" + path
			}
			all = append(all, path)
		}
	}
	return all
}

// foldersWithFiles are the folders of the repository that have files of their own. Those of tools,
// whose names begin with a dot, testdata and what was built don't count; those of images are one.
func foldersWithFiles(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !entry.IsDir() || path == "..":
			return nil
		case strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || entry.Name() == "bin":
			return filepath.SkipDir
		}
		path = filepath.ToSlash(strings.TrimPrefix(path, "../"))
		if path == "cmd" || path == "internal" || path == "test/testenv/cmd" || path == "test/apitest/cmd" {
			return nil // only folders are in it
		}
		all = append(all, path)
		if path == "test/images" {
			return filepath.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTheLayoutForContributorsNamesEveryFolder(t *testing.T) {
	listed, there := listedFolders(t), foldersWithFiles(t)
	for _, folder := range there {
		if !slices.Contains(listed, folder) {
			t.Errorf("CONTRIBUTING.md doesn't list %s", folder)
		}
	}
	for i, folder := range listed {
		if !slices.Contains(there, folder) {
			t.Errorf("CONTRIBUTING.md lists %s, and there is no such folder", folder)
		}
		if slices.Contains(listed[:i], folder) {
			t.Errorf("CONTRIBUTING.md lists %s twice", folder)
		}
	}
	if len(there) < 60 {
		t.Errorf("only %d folders were found", len(there))
	}
}
