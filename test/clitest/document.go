package clitest

// docs/json.md, held to what commands write.

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// Documented holds a table of docs/json.md to the type of what is written: it has a row
// for every field, in their order, and none may be left out.
func Documented(t *testing.T, name string, report any) {
	t.Helper()
	mod, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(string(mod)), "docs", "json.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "<!-- json: "+name+" -->\n")
	if !ok {
		t.Fatalf("docs/json.md has no table of %s", name)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var rows []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(table, -1) {
		rows = append(rows, m[1])
	}
	fields := fieldsOf(t, reflect.TypeOf(report), "")
	if got, want := strings.Join(rows, "\n"), strings.Join(fields, "\n"); got != want {
		t.Errorf("docs/json.md has of %s\n%s\n\nand what is written has\n%s", name, got, want)
	}
}

// fieldsOf are the paths of all fields below a type: windows[].board.
func fieldsOf(t *testing.T, typ reflect.Type, path string) []string {
	t.Helper()
	switch typ.Kind() {
	case reflect.Pointer:
		return fieldsOf(t, typ.Elem(), path)
	case reflect.Slice:
		return fieldsOf(t, typ.Elem(), path+"[]")
	case reflect.Struct:
	default:
		return nil
	}
	var all []string
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() {
			continue
		}
		// Of several shards, of boards by other rules than the default one, and of members with names.
		special := options == "omitempty" && (strings.Contains(name, "shard") || name == "fields" || name == "name")
		if name == "" || options != "" && !special {
			t.Errorf("%s.%s has the tag %q: a field has a name, and is never left out but where there is one shard, no board by another rule, or no name", typ, f.Name, f.Tag)
		}
		if path != "" {
			name = path + "." + name
		}
		all = append(append(all, name), fieldsOf(t, f.Type, name)...)
	}
	return all
}
