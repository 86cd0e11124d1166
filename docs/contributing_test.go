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

// listedFolders are the folders in the list of architecture.md.
func listedFolders(t *testing.T) (all []string) {
	t.Helper()
	text, err := os.ReadFile("architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^    ((?:[\w/]+/ )+) `).FindAllStringSubmatch(string(text), -1) {
		for _, name := range strings.Fields(m[1]) {
			all = append(all, strings.TrimSuffix(name, "/"))
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

// A folder is named, or is below one that is: its package comment describes it.
func TestTheLayoutForContributorsNamesEveryFolder(t *testing.T) {
	listed, there := listedFolders(t), foldersWithFiles(t)
	for _, folder := range there {
		if !slices.ContainsFunc(listed, func(above string) bool { return folder == above || strings.HasPrefix(folder, above+"/") }) {
			t.Errorf("architecture.md doesn't list %s", folder)
		}
	}
	for i, folder := range listed {
		if !slices.Contains(there, folder) {
			t.Errorf("architecture.md lists %s, and there is no such folder", folder)
		}
		if slices.Contains(listed[:i], folder) {
			t.Errorf("architecture.md lists %s twice", folder)
		}
	}
	if len(listed) < 20 || len(there) < 60 {
		t.Errorf("only %d listed folders of %d were found: the pattern is wrong", len(listed), len(there))
	}
}
