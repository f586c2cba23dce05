package main

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"switchboard/servers"
)

// A place is where a setting was set: a line of the file, a flag or a variable.
type place struct {
	name      string // file, flag or variable
	line, col int    // from 1; 0 outside a file
}

// A problem is one mistake in the configuration, in words.
type problem struct {
	at   place
	text string
}

// problems are all mistakes of a configuration. With them, the process ends with exit code 2.
type problems []problem

// Error returns a line for each problem: "file:line:col: message" or "--flag: message".
func (ps problems) Error() string {
	lines := make([]string, 0, len(ps))
	for _, p := range ps {
		at := p.at.name
		if p.at.line > 0 {
			at = fmt.Sprintf("%s:%d:%d", p.at.name, p.at.line, p.at.col)
		}
		lines = append(lines, at+": "+p.text)
	}
	return strings.Join(lines, "\n")
}

// sorted returns the problems in the order of the file (by name, line and column), without duplicates.
func (ps problems) sorted() problems {
	slices.SortStableFunc(ps, func(a, b problem) int {
		return cmp.Or(cmp.Compare(a.at.name, b.at.name), cmp.Compare(a.at.line, b.at.line), cmp.Compare(a.at.col, b.at.col))
	})
	return slices.Compact(ps)
}

// A decoder decodes a file into settings. It goes on after a mistake, and records where each setting is: a scalar
// such as "servers[0].url" at its value, a mapping such as "servers[0]" at its first key.
type decoder struct {
	file   string
	kinds  []servers.Kind // the known kinds of servers
	found  problems
	places map[string]place
}

// decode reads YAML into a struct whose fields have yaml tags. It never panics.
func (d *decoder) decode(data []byte, into any) {
	d.places = map[string]place{"": {d.file, 1, 1}}
	if len(data) > maxConfigSize {
		d.add(d.places[""], "the file is larger than %d KiB", maxConfigSize>>10)
		return
	}
	if wide := string(data[:min(len(data), 2)]); wide == "\xff\xfe" || wide == "\xfe\xff" {
		d.add(d.places[""], "the file is in UTF-16: save it as UTF-8")
		return
	}
	file, err := parse(data)
	if err != nil {
		at := d.places[""]
		text := err.Error()
		if syntax, ok := errors.AsType[yaml.Error](err); ok {
			at, text = d.place(syntax.GetToken()), syntax.GetMessage()
		}
		d.add(at, "not YAML: %s", text)
		return
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.NullType {
			continue
		}
		if body != nil {
			d.add(d.place(doc.Body.GetToken()), "a second document: everything belongs into one")
			return
		}
		body = doc.Body
	}
	if body != nil {
		d.value("", body, reflect.ValueOf(into).Elem())
	}
}

// byteOrderMark begins files that some editors of Windows save. It is no part of their text.
const byteOrderMark = "\ufeff"

// parse parses YAML. It returns an error for text that makes the parser panic, or that nests too deep for it.
func parse(data []byte) (file *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("the reader of YAML gave up on it")
		}
	}()
	tokens := lexer.Tokenize(strings.TrimPrefix(string(data), byteOrderMark))
	if t := tooDeep(tokens); t != nil {
		return nil, &yaml.SyntaxError{Message: fmt.Sprintf("nested deeper than %d", maxNesting), Token: t}
	}
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

func (d *decoder) add(at place, format string, args ...any) {
	d.found = append(d.found, problem{at, fmt.Sprintf(format, args...)})
}

func (d *decoder) place(t *token.Token) place {
	if t == nil || t.Position == nil {
		return place{d.file, 1, 1}
	}
	return place{d.file, t.Position.Line, t.Position.Column}
}

// value decodes a node into v, which is at path.
func (d *decoder) value(path string, node ast.Node, v reflect.Value) {
	at := d.place(node.GetToken())
	entries, names := mapping(node)
	if len(entries) > 0 && path != "" {
		at = d.place(entries[0].Key.GetToken()) // the token of a block is its first colon
	}
	d.places[path] = at
	switch node.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		d.add(at, "%s: anchors, aliases and tags are not used here", label(path))
		return
	case *ast.NullNode:
		d.add(at, "%s has no value", label(path))
		return
	}
	if _, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok || v.Kind() == reflect.String ||
		v.Kind() == reflect.Bool {
		d.scalar(path, node, v)
		return
	}
	switch kind := v.Kind(); {
	case kind == reflect.Int:
		d.number(path, node, v)
	case kind == reflect.Float64:
		d.price(path, node, v)
	case kind == reflect.Slice:
		d.list(path, node, v)
	case !names:
		d.add(at, "%s must be names and values, not %s", label(path), kindOf(node))
	case kind == reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for key, entry := range d.keys(path, entries) {
			value := reflect.New(v.Type().Elem()).Elem()
			d.value(join(path, key), entry.Value, value)
			v.SetMapIndex(reflect.ValueOf(key), value)
		}
	case v.Type() == reflect.TypeFor[servers.Spec]():
		d.server(path, entries, v.Addr().Interface().(*servers.Spec))
	default:
		d.object(path, entries, unknownKey, v)
	}
}

// scalar decodes text, a boolean, or a type that is decoded from text.
func (d *decoder) scalar(path string, node ast.Node, v reflect.Value) {
	at := d.place(node.GetToken())
	if v.Kind() == reflect.Bool {
		b, ok := node.(*ast.BoolNode)
		if !ok {
			d.add(at, "%s must be true or false, not %s", label(path), kindOf(node))
			return
		}
		v.SetBool(b.Value)
		return
	}
	text, ok := textOf(node, v.Type())
	if !ok {
		if m := meant(v.Type()); m != "" {
			d.add(at, "%s must be %s, not %s", label(path), m, kindOf(node))
			return
		}
		d.add(at, "%s must be text, not %s; put it in quotes if it is meant as text", label(path), kindOf(node))
		return
	}
	if text == "" {
		d.add(at, "%s has no value", label(path))
		return
	}
	if v.Kind() == reflect.String {
		v.SetString(text)
		return
	}
	if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err != nil {
		d.add(at, "%s: %q is not %s", label(path), text, meant(v.Type()))
	}
}

// textOf returns the text of a node for a setting of type t, and false if the node is no text.
func textOf(node ast.Node, t reflect.Type) (string, bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.BoolNode:
		// Earlier versions wrote these two as booleans.
		return strconv.FormatBool(n.Value), t == reflect.TypeFor[approval]() || t == reflect.TypeFor[instructing]()
	}
	return "", false
}

// maxNumber bounds every number of a file.
const maxNumber = 1_000_000

// number decodes a whole number from 0 to [maxNumber].
func (d *decoder) number(path string, node ast.Node, v reflect.Value) {
	what := kindOf(node)
	if n, ok := node.(*ast.IntegerNode); ok {
		if value, fits := n.Value.(uint64); fits && value <= maxNumber {
			v.SetInt(int64(value))
			return
		}
		what = node.String()
	}
	d.add(d.place(node.GetToken()), "%s must be a whole number from 0 to %d, not %s", label(path), maxNumber, what)
}

// price decodes a number from 0 to [maxNumber].
func (d *decoder) price(path string, node ast.Node, v reflect.Value) {
	value := -1.0
	switch n := node.(type) {
	case *ast.FloatNode:
		value = n.Value
	case *ast.IntegerNode:
		if whole, ok := n.Value.(uint64); ok {
			value = float64(whole)
		}
	}
	if value >= 0 && value <= maxNumber {
		v.SetFloat(value)
		return
	}
	d.add(d.place(node.GetToken()), "%s must be a number from 0 to %d, not %s", label(path), maxNumber, node)
}

func (d *decoder) list(path string, node ast.Node, v reflect.Value) {
	seq, ok := node.(*ast.SequenceNode)
	if !ok {
		d.add(d.place(node.GetToken()), "%s must be a list, not %s", label(path), kindOf(node))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(seq.Values), len(seq.Values)))
	for i, item := range seq.Values {
		d.value(elem(path, i), item, v.Index(i))
	}
}

// object decodes a mapping into several structs, each of which has some of its keys. For a key that none of them has,
// unknown returns the problem, or "" if there is none.
func (d *decoder) object(
	path string, entries []*ast.MappingValueNode, unknown func(path, key string, known []string) string,
	structs ...reflect.Value,
) {
	fields := map[string][]reflect.Value{}
	var known []string
	for _, v := range structs {
		for field, value := range v.Fields() {
			if name := field.Tag.Get("yaml"); name != "" && name != "-" {
				if fields[name] == nil {
					known = append(known, name)
				}
				fields[name] = append(fields[name], value)
			}
		}
	}
	for key, entry := range d.keys(path, entries) {
		for _, v := range fields[key] {
			d.value(join(path, key), entry.Value, v)
		}
		if fields[key] == nil {
			if text := unknown(path, key, known); text != "" {
				d.add(d.place(entry.Key.GetToken()), "%s", text)
			}
		}
	}
}

func unknownKey(_, key string, known []string) string {
	return fmt.Sprintf("unknown key %q%s", key, suggest(key, known))
}

// server decodes a server: the settings that all kinds have, and those of its own kind.
func (d *decoder) server(path string, entries []*ast.MappingValueNode, s *servers.Spec) {
	for _, entry := range entries {
		if text, ok := entry.Value.(*ast.StringNode); ok && entry.Key.GetToken().Value == "kind" {
			if kind, ok := kindNamed(d.kinds, text.Value); ok {
				s.Own = kind.New()
			}
		}
	}
	var others []string // rows of any kind
	for _, k := range d.kinds {
		for _, part := range k.New().Rows() {
			for field := range reflect.TypeOf(part).Elem().Fields() {
				if row := field.Tag.Get("yaml"); row != "" && !slices.Contains(others, row) {
					others = append(others, row)
				}
			}
		}
	}
	parts := []reflect.Value{reflect.ValueOf(s).Elem()}
	if s.Own != nil {
		for _, part := range s.Own.Rows() {
			parts = append(parts, reflect.ValueOf(part).Elem())
		}
	}
	d.object(path, entries, func(path, key string, known []string) string {
		if s.Own == nil {
			known = append(known, others...)
		}
		switch _, what, _ := strings.Cut(key, "_"); {
		case !slices.Contains(others, key):
			return unknownKey(path, key, known)
		case s.Own == nil:
			return "" // the checker reports that its kind is missing or unknown
		default:
			own := fmt.Sprintf(" for servers of kind %s", s.Kind)
			if i := slices.IndexFunc(known,
				func(k string) bool { return what != "" && strings.HasSuffix(k, "_"+what) }); i >= 0 {
				return label(join(path, key)) + ": is called " + known[i] + own
			}
			return label(join(path, key)) + ": is not" + own
		}
	}, parts...)
}

// keys yields the entries of a mapping in order. It reports a key that occurs twice, and yields the first.
func (d *decoder) keys(
	path string, entries []*ast.MappingValueNode,
) func(yield func(string, *ast.MappingValueNode) bool) {
	return func(yield func(string, *ast.MappingValueNode) bool) {
		seen := map[string]bool{}
		for _, entry := range entries {
			key := entry.Key.GetToken().Value
			if seen[key] {
				d.add(d.place(entry.Key.GetToken()), "%s is there twice", label(join(path, key)))
				continue
			}
			seen[key] = true
			if !yield(key, entry) {
				return
			}
		}
	}
}

// mapping returns the entries of a mapping, and false if the node is none.
func mapping(node ast.Node) ([]*ast.MappingValueNode, bool) {
	switch n := node.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}

// maxNesting bounds how deep the configuration nests; the count may be too high, never too low. The parser recurses,
// and its time grows with the square of the depth. The settings need five levels.
const maxNesting = 64

// tooDeep returns the first token that nests deeper than [maxNesting], or nil. It runs before the parser. In a block,
// each level is indented by at least one column, so a line that begins far to the right counts as deep. Open brackets
// nest too, and so do dashes, keys, anchors and tags that follow one another on a line.
func tooDeep(tokens token.Tokens) *token.Token {
	depth, line := 0, 0
	var around []int // the depth around each open bracket
	for _, t := range tokens {
		first := t.Position.Line != line
		line = t.Position.Line
		if len(around) == 0 && first {
			depth = 0
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			around = append(around, depth)
			depth++
		case token.SequenceEndType, token.MappingEndType:
			if last := len(around) - 1; last >= 0 {
				depth, around = around[last], around[:last]
			}
		case token.CollectEntryType:
			if last := len(around) - 1; last >= 0 {
				depth = around[last] + 1
			}
		case token.SequenceEntryType, token.MappingKeyType, token.MappingValueType, token.AnchorType, token.TagType:
			depth++
		case token.CommentType:
			continue
		}
		if depth > maxNesting || len(around) == 0 && first && t.Position.Column > maxNesting {
			return t
		}
	}
	return nil
}

// join makes the path of a key in a mapping.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// label names a path for people.
func label(path string) string {
	return cmp.Or(path, "the file")
}

// kindOf names the type of a node for people.
func kindOf(node ast.Node) string {
	switch node.(type) {
	case *ast.StringNode, *ast.LiteralNode:
		return "text"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number"
	case *ast.BoolNode:
		return "true or false"
	case *ast.SequenceNode:
		return "a list"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "names and values"
	}
	return "this"
}

// meant describes how a scalar type is written, for people; "" means any text.
func meant(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[netip.Prefix]():
		return "a network such as 10.0.0.0/8 or 10.0.0.5/32"
	case reflect.TypeFor[netip.Addr]():
		return "an IP address such as 203.0.113.7"
	case reflect.TypeFor[netip.AddrPort]():
		return "an IP address and port such as 0.0.0.0:8443"
	case reflect.TypeFor[span]():
		return "a time such as 60s or 30m"
	case reflect.TypeFor[approval]():
		return "none, voice or all"
	case reflect.TypeFor[instructing]():
		return "none, added or all"
	}
	return ""
}
