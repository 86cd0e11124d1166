package config

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// docs/configuration.md is what the program says of itself. UPDATE_DOCS=1 writes it.
func TestTheConfigurationsDocumentIsTheProgramsOwn(t *testing.T) {
	const path = "../../docs/configuration.md"
	var now bytes.Buffer
	if err := WriteMarkdown(&now); err != nil {
		t.Fatal(err)
	}
	if os.Getenv("UPDATE_DOCS") != "" {
		if err := os.WriteFile(path, now.Bytes(), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, now.Bytes()) {
		t.Fatal("docs/configuration.md differs from `consumer config --markdown`: run this test with UPDATE_DOCS=1")
	}
}

func TestTheDocumentHasARowForEverySetting(t *testing.T) {
	var text bytes.Buffer
	if err := WriteMarkdown(&text); err != nil {
		t.Fatal(err)
	}
	for _, o := range options(&Config{}) {
		key := o.Key
		if name, setting := ownSetting(key); name != "" {
			key = "periods.<name>." + setting
		}
		rows := regexp.MustCompile("(?m)^\\| [^|]*`" + regexp.QuoteMeta(key) + "`")
		if n := len(rows.FindAllString(text.String(), -1)); n != 1 {
			t.Errorf("%d rows have %s", n, o.Key)
		}
	}
}

// documents are all that describe settings. The changelog also names those that are gone.
func documents(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "deploy/*", "docker-compose.yml"} {
		paths, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if info, err := os.Stat(path); err != nil || info.IsDir() || filepath.Base(path) == "CHANGELOG.md" {
				continue
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			all[path] = string(text)
		}
	}
	return all
}

func TestNoDocumentNamesASettingThatDoesNotExist(t *testing.T) {
	keys, variables := map[string]bool{}, map[string]bool{FileVariable: true}
	for _, o := range options(&Config{}) {
		keys[o.Key], variables[o.Variable()] = true, true
		for section := o.Key; section != ""; { // kafka.tls names a section
			section = section[:max(strings.LastIndexByte(section, '.'), 0)]
			keys[section] = true
		}
	}
	key := regexp.MustCompile("`((?:kafka|redis|periods|event|log|api)\\.[a-z_.-]*[a-z])(?::[^`]*)?`")
	variable := regexp.MustCompile(Prefix + `[A-Z0-9_]*[A-Z0-9]`)
	seen := 0
	for path, text := range documents(t) {
		for _, m := range key.FindAllStringSubmatch(text, -1) {
			seen++
			if !keys[m[1]] {
				t.Errorf("%s names `%s`, and there is no such setting", path, m[1])
			}
		}
		for _, name := range variable.FindAllString(text, -1) {
			seen++
			if !variables[name] && !strings.HasPrefix(name+"_", testVariables) {
				t.Errorf("%s names %s, and there is no such variable", path, name)
			}
		}
	}
	if seen < len(keys) {
		t.Errorf("only %d settings were found in all documents: the patterns are wrong", seen)
	}
}

// Every block of YAML in a document that has settings is a configuration.
func TestTheConfigurationsInDocumentsAreValid(t *testing.T) {
	sections := []string{"kafka:", "redis:", "periods:", "event:", "log:", "api:"}
	seen := 0
	for path, text := range documents(t) {
		blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(text, -1)
		switch filepath.Base(path) {
		case "standings.yaml":
			blocks = [][]string{{"", text}}
		case "kubernetes.yaml":
			blocks = [][]string{{"", configMap(t, text)}}
		}
		for _, block := range blocks {
			if !slices.ContainsFunc(sections, func(s string) bool { return strings.Contains("\n"+block[1], "\n"+s) }) {
				continue
			}
			seen++
			for key, err := range problems(t, block[1]) {
				if strings.HasSuffix(key, "_file") { // whose files are elsewhere
					continue
				}
				t.Errorf("%s: %v in\n%s", path, err, block[1])
			}
		}
	}
	if seen == 0 {
		t.Error("no configuration was found in any document")
	}
}

// configMap is the configuration in a manifest for Kubernetes.
func configMap(t *testing.T, manifest string) string {
	t.Helper()
	for part := yaml.NewDecoder(strings.NewReader(manifest)); ; {
		var object struct {
			Kind string
			Data map[string]string
		}
		if err := part.Decode(&object); err != nil {
			t.Fatalf("the manifest has no configuration: %v", err)
		}
		if object.Kind == "ConfigMap" {
			return object.Data["standings.yaml"]
		}
	}
}
