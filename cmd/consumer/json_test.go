package main

// This file compares docs/json.md with the types that commands write as JSON.

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every table of docs/json.md must have a row for every field of its type, in order, and every field must
// always be written.
func TestTheJSONIsDocumented(t *testing.T) {
	types := map[string]string{
		"status": "status.report", "top": "top.report", "boards": "boards.report", "explain": "explain.report",
		"archive run": "archive.runReport", "archive list": "archive.listReport", "archive verify": "archive.verifyReport",
		"bans": "ban.report", "ban": "ban.outcome", "reopen": "reopen.report", "check": "check.checkReport",
		"reshard": "reshard.report", "rebuild": "rebuild.report", "diff": "diff.report", "config": "configcmd.report",
		"dead-letters list": "deadletters.listReport", "dead-letters list --counts": "deadletters.countsReport",
		"produce --check": "produce.report", "version": "version.report",
	}
	text, err := os.ReadFile("../../docs/json.md")
	require.NoError(t, err)
	read := packages{}
	for name, typ := range types {
		dir, typ, _ := strings.Cut(typ, ".")
		fields := read.fieldsOf(t, source{dir: dir}, ast.NewIdent(typ), "")
		require.NotEmpty(t, fields, name)
		require.Equal(t, strings.Join(fields, "\n"), strings.Join(rowsOf(t, string(text), name), "\n"), "the fields of %s, and the rows of its table", name)
	}
}

var (
	tableRow   = regexp.MustCompile("(?m)^\\| (`.*?) \\|(.*?)\\|")
	fieldName  = regexp.MustCompile("`([^`]+)`")
	objectLink = regexp.MustCompile(`^ (?:list of )?\[\w+\]\(#([\w-]+)\)`)
)

// rowsOf returns the fields that a table names. A name that starts with a dot is in the same object as the
// last full name of its row; a link to another table stands for that table's fields.
func rowsOf(t *testing.T, text, name string) (rows []string) {
	t.Helper()
	_, table, ok := strings.Cut(text, "<!-- json: "+name+" -->\n")
	require.True(t, ok, "docs/json.md has no table of %s", name)
	table, _, _ = strings.Cut(table, "\n\n")
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

// packages holds the parsed files of packages by directory.
type packages map[string][]*ast.File

// source is the place where a type is named: a package's directory, and the file's imports.
type source struct {
	dir     string
	imports map[string]string // directories in this module, by package name
}

// fieldsOf returns the paths of all JSON fields of a type, such as windows[].board.
func (p packages) fieldsOf(t *testing.T, in source, typ ast.Expr, path string) []string {
	t.Helper()
	switch typ := typ.(type) {
	case *ast.StarExpr:
		return p.fieldsOf(t, in, typ.X, path)
	case *ast.ArrayType:
		return p.fieldsOf(t, in, typ.Elt, path+"[]")
	case *ast.SelectorExpr:
		if dir := in.imports[typ.X.(*ast.Ident).Name]; dir != "" {
			return p.fieldsOf(t, source{dir: dir}, typ.Sel, path)
		}
	case *ast.Ident:
		if declared, in := p.declarationOf(t, in.dir, typ.Name); declared != nil {
			return p.fieldsOf(t, in, declared, path)
		}
	case *ast.StructType:
		return p.fieldsOfStruct(t, in, typ, path)
	}
	return nil
}

func (p packages) fieldsOfStruct(t *testing.T, in source, typ *ast.StructType, path string) (all []string) {
	t.Helper()
	for _, f := range typ.Fields.List {
		if len(f.Names) > 0 && !f.Names[0].IsExported() {
			continue
		}
		var tag reflect.StructTag
		if f.Tag != nil {
			text, err := strconv.Unquote(f.Tag.Value)
			require.NoError(t, err)
			tag = reflect.StructTag(text)
		}
		name, options, _ := strings.Cut(tag.Get("json"), ",")
		// These are absent if there is one shard, if the board has the default rule, or if the member has
		// no name.
		optional := options == "omitempty" && (strings.Contains(name, "shard") || name == "fields" || name == "name")
		if len(f.Names) != 1 || name == "" || options != "" && !optional {
			t.Errorf("%s: a field of %q has the tag %q: every field has a name of its own, and is never left out", in.dir, path, tag)
		}
		if path != "" {
			name = path + "." + name
		}
		all = append(append(all, name), p.fieldsOf(t, in, f.Type, name)...)
	}
	return all
}

// declarationOf returns a type's declaration in a package; nil for Go's own types.
func (p packages) declarationOf(t *testing.T, dir, name string) (ast.Expr, source) {
	t.Helper()
	for _, file := range p.files(t, dir) {
		for _, d := range file.Decls {
			declared, _ := d.(*ast.GenDecl)
			if declared == nil || declared.Tok != token.TYPE {
				continue
			}
			for _, spec := range declared.Specs {
				if spec := spec.(*ast.TypeSpec); spec.Name.Name == name {
					return spec.Type, source{dir, importsOf(file)}
				}
			}
		}
	}
	return nil, source{}
}

// files returns a package's files without its tests.
func (p packages) files(t *testing.T, dir string) []*ast.File {
	t.Helper()
	if p[dir] == nil {
		paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		for _, path := range paths {
			if !strings.HasSuffix(path, "_test.go") {
				file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
				require.NoError(t, err)
				p[dir] = append(p[dir], file)
			}
		}
	}
	return p[dir]
}

func importsOf(file *ast.File) map[string]string {
	found := map[string]string{}
	for _, i := range file.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		if dir, ours := strings.CutPrefix(path, "github.com/standings/standings/"); ours {
			found[filepath.Base(dir)] = filepath.Join("..", "..", dir)
		}
	}
	return found
}
