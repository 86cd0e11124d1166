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

// Documented compares a table of docs/json.md with the type that a command writes: the table
// names every field, in order, and no field may be absent.
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
	fields := fieldsOf(t, reflect.TypeOf(report), "")
	if got, want := strings.Join(rowsOf(t, string(text), name), "\n"), strings.Join(fields, "\n"); got != want {
		t.Errorf("docs/json.md has of %s\n%s\n\nand the program writes\n%s", name, got, want)
	}
}

var (
	tableRow   = regexp.MustCompile("(?m)^\\| (`.*?) \\|(.*?)\\|")
	fieldName  = regexp.MustCompile("`([^`]+)`")
	objectLink = regexp.MustCompile(`^ (?:list of )?\[\w+\]\(#([\w-]+)\)`)
)

// rowsOf returns the fields that a table names. A name that starts with a dot is in the same object
// as the last full name of its row; a type that links to another table stands for that table's fields.
func rowsOf(t *testing.T, text, name string) []string {
	t.Helper()
	_, table, ok := strings.Cut(text, "<!-- json: "+name+" -->\n")
	if !ok {
		t.Fatalf("docs/json.md has no table of %s", name)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var rows []string
	for _, row := range tableRow.FindAllStringSubmatch(table, -1) {
		object, last := "", ""
		for _, m := range fieldName.FindAllStringSubmatch(row[1], -1) {
			last = m[1]
			if strings.HasPrefix(last, ".") {
				last = object + last
			} else {
				object = last[:max(strings.LastIndex(last, "."), 0)]
			}
			rows = append(rows, last)
		}
		link := objectLink.FindStringSubmatch(row[2])
		if link == nil {
			continue
		}
		if strings.HasPrefix(row[2], " list of ") {
			last += "[]"
		}
		for _, field := range rowsOf(t, text, strings.ReplaceAll(link[1], "-", " ")) {
			rows = append(rows, last+"."+field)
		}
	}
	return rows
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
