package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// The budgets of the house.
const (
	maxFileLines     = 500
	maxFunctionLines = 100
	maxColumns       = 120 // of a comment; a tab has four
	maxMethods       = 3
	maxPackages      = 522 // compiled into the program, with the standard library's: who builds it waits for them
)

// house is the tree that is checked, from its root.
const house = "../.."

// A breach is a rule broken at a place.
type breach struct {
	file   string
	line   int
	reason string
}

// sources reads every Go, JavaScript and CSS file of ours, by its path from the root.
func sources(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(house, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			hidden := strings.HasPrefix(entry.Name(), ".") && name != house
			if hidden || entry.Name() == "testdata" || entry.Name() == "node_modules" {
				return filepath.SkipDir
			}
			return nil
		}
		if !slices.Contains([]string{".go", ".js", ".css"}, filepath.Ext(name)) {
			return nil
		}
		data, err := os.ReadFile(name)
		rel, relErr := filepath.Rel(house, name)
		if err != nil || relErr != nil {
			return fmt.Errorf("%s: %w %w", name, err, relErr)
		}
		all[filepath.ToSlash(rel)] = string(data)
		return nil
	})
	must(t, err)
	return all
}

func TestHygiene(t *testing.T) {
	all := sources(t)
	if len(all) < 100 {
		t.Fatalf("only %d files were found", len(all))
	}
	found := inspect(all)
	data, err := os.ReadFile(house + "/go.mod")
	must(t, err)
	found = append(found, inspectModule(string(data))...)
	for _, b := range found {
		t.Errorf("%s:%d: %s", b.file, b.line, b.reason)
	}
}

// TestHygieneOfPackages: the budget of packages is lowered with what is left out, and raised only with a reason.
func TestHygieneOfPackages(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", ".")
	list.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	text, err := list.Output()
	must(t, err)
	switch n := len(strings.Fields(string(text))); {
	case n > maxPackages:
		t.Errorf("%d packages are compiled into the program, the budget is %d", n, maxPackages)
	case n < maxPackages-10:
		t.Errorf("%d packages are compiled into the program: lower the budget, which is %d", n, maxPackages)
	}
}

// inspectModule checks go.mod: what we build is what others get.
func inspectModule(text string) []breach {
	var found []breach
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "replace ") || strings.HasPrefix(strings.TrimSpace(line), "replace(") {
			found = append(found, breach{"go.mod", i + 1, "replaces a module: what we test must be what others build"})
		}
	}
	return found
}

// wideComments checks the comments that stand alone: prose can always be broken.
func wideComments(name, text string) []breach {
	var found []breach
	n := 0
	for line := range strings.Lines(text) {
		n++
		columns := utf8.RuneCountInString(strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "    "))
		if strings.HasPrefix(strings.TrimSpace(line), "// ") && columns > maxColumns {
			found = append(found, breach{name, n, fmt.Sprintf("a comment has %d columns, the budget is %d", columns, maxColumns)})
		}
	}
	return found
}

// inspect checks files by path and returns what breaks the rules, in order.
func inspect(files map[string]string) []breach {
	var found []breach
	docs := map[string][]string{} // package directory -> files with a package comment
	for name, text := range files {
		if n := strings.Count(text, "\n"); n > maxFileLines {
			found = append(found, breach{name, maxFileLines + 1, fmt.Sprintf("has %d lines, the budget is %d", n, maxFileLines)})
		}
		if path.Ext(name) != ".go" {
			continue
		}
		found = append(found, wideComments(name, text)...)
		v := &visitor{file: name, pkg: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), set: token.NewFileSet()}
		tree, err := parser.ParseFile(v.set, name, text, parser.ParseComments)
		if err != nil {
			found = append(found, breach{name, 1, "does not parse: " + err.Error()})
			continue
		}
		v.whole(tree)
		found = append(found, v.found...)
		if !v.test {
			docs[v.pkg] = append(docs[v.pkg], "")
			if tree.Doc != nil {
				docs[v.pkg][len(docs[v.pkg])-1] = name
			}
		}
	}
	for pkg, names := range docs {
		names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
		if slices.Sort(names); len(names) != 1 {
			found = append(found, breach{pkg, 1, fmt.Sprintf("has %d package comments %v, and needs one", len(names), names)})
		}
	}
	return sorted(found)
}

// sorted puts breaches in the order of their places.
func sorted(found []breach) []breach {
	slices.SortFunc(found, func(a, b breach) int {
		return strings.Compare(fmt.Sprintf("%s:%06d:%s", a.file, a.line, a.reason), fmt.Sprintf("%s:%06d:%s", b.file, b.line, b.reason))
	})
	return found
}

// A visitor checks one Go file.
type visitor struct {
	file, pkg string
	test      bool
	set       *token.FileSet
	found     []breach
}

func (v *visitor) breach(at token.Pos, format string, args ...any) {
	v.found = append(v.found, breach{v.file, v.set.Position(at).Line, fmt.Sprintf(format, args...)})
}

func (v *visitor) whole(tree *ast.File) {
	for _, spec := range tree.Imports {
		if fault := importFault(v.pkg, v.test, strings.Trim(spec.Path.Value, `"`)); fault != "" {
			v.breach(spec.Pos(), "%s", fault)
		}
	}
	v.groups(tree.Imports)
	if tree.Doc != nil && !v.test {
		v.packageDoc(tree)
	}
	for _, decl := range tree.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			v.function(d)
		case *ast.GenDecl:
			v.declared(d)
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		if face, ok := n.(*ast.InterfaceType); ok {
			v.face(face)
		}
		return true
	})
}

// groups holds imports to three groups, a blank line apart: the standard library's, others', ours.
func (v *visitor) groups(imports []*ast.ImportSpec) {
	group := func(spec *ast.ImportSpec) int {
		first, _, _ := strings.Cut(strings.Trim(spec.Path.Value, `"`), "/")
		switch {
		case first == "switchboard":
			return 2
		case strings.Contains(first, "."):
			return 1
		}
		return 0
	}
	for i := 1; i < len(imports); i++ {
		before, here := imports[i-1], imports[i]
		apart := v.set.Position(here.Pos()).Line-v.set.Position(before.End()).Line > 1
		if group(here) < group(before) || group(here) > group(before) && !apart {
			v.breach(here.Pos(), "imports are grouped: the standard library's, others', ours")
		}
	}
}

var sentenceEnd = regexp.MustCompile(`[.!?:](\s|$)`)

func (v *visitor) packageDoc(tree *ast.File) {
	text := tree.Doc.Text()
	if len(sentenceEnd.FindAllString(text, -1)) < 2 {
		v.breach(tree.Doc.Pos(), "package comment has less than two sentences")
	}
	if tree.Name.Name != "main" && !strings.Contains(strings.ToLower(strings.Join(strings.Fields(text), " ")), "must not know") {
		v.breach(tree.Doc.Pos(), `package comment does not tell what the package "must not know"`)
	}
}

// lines checks the length of a function.
func (v *visitor) lines(from, to token.Pos, name string) {
	if lines := v.set.Position(to).Line - v.set.Position(from).Line + 1; lines > maxFunctionLines {
		v.breach(from, "%s has %d lines, the budget is %d", name, lines, maxFunctionLines)
	}
}

func (v *visitor) function(d *ast.FuncDecl) {
	start := d.Type.Func // without its comment
	v.lines(start, d.End(), d.Name.Name)
	if d.Name.Name == "init" && d.Recv == nil {
		v.breach(start, "init runs before anybody asked: use a function")
	}
	exported := d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d.Recv)))
	if exported && d.Doc == nil && !v.test {
		v.breach(start, "%s is exported and has no comment", d.Name.Name)
	}
}

// receiver names the type of a method.
func receiver(list *ast.FieldList) string {
	expr := list.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.IndexListExpr:
			expr = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}

// declared checks constants, variables and types at top level.
func (v *visitor) declared(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && d.Doc == nil && s.Doc == nil && !v.test {
				v.breach(s.Pos(), "%s is exported and has no comment", s.Name.Name)
			}
		case *ast.ValueSpec:
			for _, name := range s.Names {
				if name.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil && !v.test {
					v.breach(name.Pos(), "%s is exported and has no comment", name.Name)
				}
			}
			for _, value := range s.Values {
				if literal, ok := value.(*ast.FuncLit); ok {
					v.lines(literal.Pos(), literal.End(), s.Names[0].Name)
				}
			}
		}
	}
}

func (v *visitor) face(face *ast.InterfaceType) {
	methods := 0
	for _, field := range face.Methods.List {
		methods += len(field.Names) // what is embedded is counted where it is written
	}
	switch {
	case len(face.Methods.List) == 0:
		v.breach(face.Pos(), "interface{} is called any")
	case methods > maxMethods:
		v.breach(face.Pos(), "an interface with %d methods, the budget is %d", methods, maxMethods)
	}
}
