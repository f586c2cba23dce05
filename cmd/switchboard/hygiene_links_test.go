package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// docLink is a link of a Go comment to a declaration: a name, a member of a type, or either behind its package.
// A word in capitals is a script's, not Go's.
var docLink = regexp.MustCompile(`\[\*?((?:\w+\.){1,2}\w+|[A-Z]+[a-z]\w*)\](?:[^(:\w]|$)`)

// TestDocLinks holds that what a comment links to is there: a reader follows a link to find the contract.
func TestDocLinks(t *testing.T) {
	for _, b := range brokenLinks(sources(t)) {
		t.Errorf("%s:%d: %s", b.file, b.line, b.reason)
	}
}

func TestBrokenLinksAreFound(t *testing.T) {
	found := brokenLinks(map[string]string{
		"a/a.go": "package a\n\n// T is as [T.F], [T.M], [b.U.G] and [b.Gone].\ntype T struct{ F int }\n\n// M is no [Lost], [T.Lost].\nfunc (T) M() {}\n",
		"a/c.go": "package a\n\nimport b \"switchboard/b\"\n\nvar _ b.U // [b.U]\n",
		"b/b.go": "package b\n\ntype U interface{ G() }\n",
	})
	if got := fmt.Sprint(found); got != "[{a/a.go 3 links to b.Gone, which is not there} {a/a.go 6 links to Lost, which is not there} {a/a.go 6 links to T.Lost, which is not there}]" {
		t.Errorf("found %s", got)
	}
}

// brokenLinks returns the doc links in Go files that name nothing of ours. Links into other modules are not
// looked at; a package that no file of the linking package imports is found by its last word.
func brokenLinks(files map[string]string) []breach {
	names := map[string]map[string]bool{} // package directory -> what it declares, members as Type.Member
	byWord := map[string][]string{}       // last word of a directory -> directories
	trees := map[string]*ast.File{}
	set := token.NewFileSet()
	for name, text := range files {
		tree, err := parser.ParseFile(set, name, text, parser.ParseComments)
		if path.Ext(name) != ".go" || err != nil {
			continue
		}
		trees[name] = tree
		dir := path.Dir(name)
		if names[dir] == nil {
			names[dir] = map[string]bool{}
			byWord[path.Base(dir)] = append(byWord[path.Base(dir)], dir)
		}
		declarations(tree, names[dir])
	}
	var found []breach
	for name, tree := range trees {
		imported := map[string]string{} // the name of an import in this file -> its path
		for _, spec := range tree.Imports {
			at, _ := strconv.Unquote(spec.Path.Value)
			word := path.Base(at)
			if spec.Name != nil {
				word = spec.Name.Name
			}
			imported[word] = at
		}
		for _, group := range tree.Comments {
			for _, comment := range group.List {
				for _, m := range docLink.FindAllStringSubmatch(comment.Text, -1) {
					if !linked(m[1], names, names[path.Dir(name)], imported, byWord) {
						found = append(found, breach{name, set.Position(comment.Pos()).Line, "links to " + m[1] + ", which is not there"})
					}
				}
			}
		}
	}
	return sorted(found)
}

// linked says whether a link from a file leads somewhere, or out of the house.
func linked(
	link string,
	names map[string]map[string]bool,
	own map[string]bool,
	imported map[string]string,
	byWord map[string][]string,
) bool {
	if own[link] {
		return true
	}
	word, rest, dotted := strings.Cut(link, ".")
	if !dotted {
		return false
	}
	if at, ok := imported[word]; ok {
		dir, ours := strings.CutPrefix(at, "switchboard/")
		return !ours || names[dir][rest]
	}
	for _, dir := range byWord[word] {
		if names[dir][rest] {
			return true
		}
	}
	return len(byWord[word]) == 0 && !own[word] && strings.ToLower(word) == word // a package of others
}

// declarations adds what a file declares on its top level.
func declarations(tree *ast.File, into map[string]bool) {
	for _, decl := range tree.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiver(d.Recv) + "." + name
			}
			into[name] = true
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				declaredBy(spec, into)
			}
		}
	}
}

func declaredBy(spec ast.Spec, into map[string]bool) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			into[name.Name] = true
		}
	case *ast.TypeSpec:
		into[s.Name.Name] = true
		var members *ast.FieldList
		switch kind := s.Type.(type) {
		case *ast.StructType:
			members = kind.Fields
		case *ast.InterfaceType:
			members = kind.Methods
		default:
			return
		}
		for _, field := range members.List {
			for _, name := range field.Names {
				into[s.Name.Name+"."+name.Name] = true
			}
		}
	}
}
