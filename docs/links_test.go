package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	codeBlock  = regexp.MustCompile("(?ms)^```.*?^```$")
	headline   = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	htmlAnchor = regexp.MustCompile(`<a id="([^"]+)"></a>`)
	dropped    = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	linked     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
)

// anchors are the places in a document that a link can lead to, as GitHub names them.
func anchors(text string) map[string]bool {
	text = codeBlock.ReplaceAllString(text, "")
	all, times := map[string]bool{}, map[string]int{}
	for _, m := range headline.FindAllStringSubmatch(text, -1) {
		name := strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")
		if n := times[name]; n > 0 {
			all[name+"-"+strconv.Itoa(n)] = true
		} else {
			all[name] = true
		}
		times[name]++
	}
	for _, m := range htmlAnchor.FindAllStringSubmatch(text, -1) {
		all[m[1]] = true
	}
	return all
}

func TestEveryLinkInADocumentLeadsSomewhere(t *testing.T) {
	paths, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, path := range append(paths, "../README.md", "../CONTRIBUTING.md", "../CHANGELOG.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range linked.FindAllStringSubmatch(codeBlock.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			seen++
			file, anchor, _ := strings.Cut(m[1], "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			there, err := os.ReadFile(target)
			if err != nil {
				if _, err := os.Stat(target); err != nil || anchor != "" {
					t.Errorf("%s: %s leads to no file", path, m[1])
				}
				continue
			}
			if anchor != "" && !anchors(string(there))[anchor] {
				t.Errorf("%s: %s leads to no headline", path, m[1])
			}
		}
	}
	if seen < 50 {
		t.Errorf("only %d links were found: the pattern is wrong", seen)
	}
}
