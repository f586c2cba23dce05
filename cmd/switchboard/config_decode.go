package main

import (
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"switchboard/servers"
)

// byteOrderMark begins files that some editors of Windows save. It is no part of their text.
const byteOrderMark = "\ufeff"

// maxNumber bounds every number of a file.
const maxNumber = 1_000_000

// decode reads YAML into a struct whose fields have yaml tags. It goes on after a mistake, and records where each
// setting is: a scalar such as "servers[0].url" at its value, a mapping such as "servers[0]" at its first key. It never
// panics.
func (r *reader) decode(data []byte, into any) {
	r.places[""] = place{r.file, 1, 1}
	body, err := parse(data)
	if syntax, ok := errors.AsType[*yaml.SyntaxError](err); ok {
		r.add(r.place(syntax.Token), "%s", syntax.Message)
	} else if err != nil {
		r.add(r.places[""], "%v", err)
	} else if body != nil {
		r.value("", body, reflect.ValueOf(into).Elem())
	}
}

// parse parses YAML and returns its document, nil if it is empty. It returns an error for text that is too large, or
// that makes the parser panic.
func parse(data []byte) (body ast.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			body, err = nil, errors.New("not YAML: the reader of YAML gave up on it")
		}
	}()
	if len(data) > maxConfigSize {
		return nil, fmt.Errorf("the file is larger than %d KiB", maxConfigSize>>10)
	}
	text := strings.TrimPrefix(string(data), byteOrderMark)
	if strings.HasPrefix(text, "\xff\xfe") || strings.HasPrefix(text, "\xfe\xff") {
		return nil, errors.New("the file is in UTF-16: save it as UTF-8")
	}
	file, err := parser.ParseBytes([]byte(text), 0, parser.AllowDuplicateMapKey())
	if wrong, ok := errors.AsType[yaml.Error](err); ok {
		return nil, &yaml.SyntaxError{Message: "not YAML: " + wrong.GetMessage(), Token: wrong.GetToken()}
	} else if err != nil {
		return nil, err
	}
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil || doc.Body.Type() == ast.NullType:
		case body != nil:
			return nil, &yaml.SyntaxError{Message: "a second document: everything belongs into one", Token: doc.Body.GetToken()}
		default:
			body = doc.Body
		}
	}
	return body, nil
}

func (r *reader) place(t *token.Token) place {
	if t == nil || t.Position == nil {
		return place{r.file, 1, 1}
	}
	return place{r.file, t.Position.Line, t.Position.Column}
}

// value decodes a node into v, which is at path.
func (r *reader) value(path string, node ast.Node, v reflect.Value) {
	at := r.place(node.GetToken())
	entries, isMapping := mapping(node)
	if len(entries) > 0 && path != "" {
		at = r.place(entries[0].Key.GetToken()) // the token of a block is its first colon
	}
	r.places[path] = at
	items, isList := node.(*ast.SequenceNode)
	switch kind := v.Kind(); {
	case node.Type() == ast.AnchorType || node.Type() == ast.AliasType || node.Type() == ast.TagType:
		r.add(at, "%s: anchors, aliases and tags are not used here", label(path))
	case node.Type() == ast.NullType:
		r.add(at, "%s has no value", label(path))
	case kind == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		r.value(path, node, v.Elem())
	case r.scalar(at, path, node, v):
	case v.Type() == reflect.TypeFor[servers.Project]() && !isMapping: // its directory alone
		r.value(path, node, v.FieldByName("Dir"))
	case kind == reflect.Slice && isList:
		v.Set(reflect.MakeSlice(v.Type(), len(items.Values), len(items.Values)))
		for i, item := range items.Values {
			r.value(elem(path, i), item, v.Index(i))
		}
	case kind == reflect.Slice:
		r.add(at, "%s must be a list, not %s", label(path), kindOf(node))
	case !isMapping:
		r.add(at, "%s must be names and values, not %s", label(path), kindOf(node))
	case kind == reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for key, entry := range r.entries(path, entries) {
			value := reflect.New(v.Type().Elem()).Elem()
			r.value(join(path, key.Value), entry, value)
			v.SetMapIndex(reflect.ValueOf(key.Value), value)
		}
	case v.Type() == reflect.TypeFor[servers.Spec]():
		r.server(path, node, entries, v.Addr().Interface().(*servers.Spec))
	default:
		unknown, known := r.object(path, entries, v)
		for _, key := range unknown {
			r.unknown(key, known)
		}
	}
}

// scalar decodes text, a number, true or false, or a type that is decoded from text. It returns false if v is of
// another type.
func (r *reader) scalar(at place, path string, node ast.Node, v reflect.Value) bool {
	text, isText := textOf(node)
	before := v.Interface() // what is wrong changes nothing
	var want, more string
	var ok bool
	switch into := v.Addr().Interface().(type) {
	case *string:
		want, more, ok = "text", "; put it in quotes if it is meant as text", isText
		*into = text
	case *bool:
		want, ok = "true or false", node.Type() == ast.BoolType
		*into = text == "true"
	case *int:
		n, err := strconv.ParseInt(text, 0, 64)
		want = fmt.Sprintf("a whole number from 0 to %d", maxNumber)
		ok = node.Type() == ast.IntegerType && err == nil && 0 <= n && n <= maxNumber
		*into = int(n)
	case *float64:
		n, err := strconv.ParseFloat(text, 64)
		want, ok = fmt.Sprintf("a number from 0 to %d", maxNumber), !isText && err == nil && 0 <= n && n <= maxNumber
		*into = n
	case encoding.TextUnmarshaler:
		want, ok = meant[v.Type()], text != "" && into.UnmarshalText([]byte(text)) == nil
	default:
		return false
	}
	if !ok {
		v.Set(reflect.ValueOf(before))
	}
	switch {
	case isText && text == "":
		r.add(at, "%s has no value", label(path))
	case !ok && isText:
		r.add(at, "%s must be %s, not %q", label(path), cmp.Or(want, "text"), text)
	case !ok:
		r.add(at, "%s must be %s, not %s%s", label(path), cmp.Or(want, "text"), cmp.Or(text, kindOf(node)), more)
	}
	return true
}

// textOf returns the text of a scalar, and whether it is text and no number or truth value; "": it is no scalar.
func textOf(node ast.Node) (text string, isText bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.BoolNode:
		return strconv.FormatBool(n.Value), false
	case *ast.IntegerNode, *ast.FloatNode:
		return node.GetToken().Value, false
	}
	return "", false
}

// meant describes how a type that is decoded from text is written, for people. Set once.
var meant = map[reflect.Type]string{
	reflect.TypeFor[netip.Prefix]():   "a network such as 10.0.0.0/8 or 10.0.0.5/32",
	reflect.TypeFor[netip.Addr]():     "an IP address such as 203.0.113.7",
	reflect.TypeFor[netip.AddrPort](): "an IP address and port such as 0.0.0.0:8443",
	reflect.TypeFor[span]():           "a time such as 60s or 30m",
	reflect.TypeFor[approval]():       "none, voice or all",
	reflect.TypeFor[instructing]():    "none, added or all",
}

// object decodes a mapping into several structs, each of which has some of its keys. It returns the keys that none of
// them has, and those that there are.
func (r *reader) object(
	path string, entries []*ast.MappingValueNode, structs ...reflect.Value,
) (unknown []*token.Token, known []string) {
	fields := map[string][]reflect.Value{}
	for _, v := range structs {
		for row, value := range rows(v) {
			if fields[row] == nil {
				known = append(known, row)
			}
			fields[row] = append(fields[row], value)
		}
	}
	for key, entry := range r.entries(path, entries) {
		for _, v := range fields[key.Value] {
			r.value(join(path, key.Value), entry, v)
		}
		if fields[key.Value] == nil {
			unknown = append(unknown, key)
		}
	}
	return unknown, known
}

// entries yields the keys and values of a mapping in order. It reports a key that occurs twice, and yields the first.
func (r *reader) entries(path string, all []*ast.MappingValueNode) iter.Seq2[*token.Token, ast.Node] {
	return func(yield func(*token.Token, ast.Node) bool) {
		seen := map[string]bool{}
		for _, entry := range all {
			key := entry.Key.GetToken()
			if seen[key.Value] {
				r.add(r.place(key), "%s is there twice", label(join(path, key.Value)))
			} else if !yield(key, entry.Value) {
				return
			}
			seen[key.Value] = true
		}
	}
}

// rows yields the settings of a struct: the fields with a yaml tag, by its name.
func rows(v reflect.Value) iter.Seq2[string, reflect.Value] {
	return func(yield func(string, reflect.Value) bool) {
		for field, value := range v.Fields() {
			if name := field.Tag.Get("yaml"); name != "" && name != "-" && !yield(name, value) {
				return
			}
		}
	}
}

// unknown reports a key that is none of the known ones.
func (r *reader) unknown(key *token.Token, known []string) {
	r.add(r.place(key), "unknown key %q%s", key.Value, suggest(key.Value, known))
}

// server decodes a server: the settings that all kinds have, and those of its own kind.
func (r *reader) server(path string, node ast.Node, entries []*ast.MappingValueNode, s *servers.Spec) {
	before := len(r.found)
	var name string
	for _, entry := range entries {
		if entry.Key.GetToken().Value == "kind" {
			name, _ = textOf(entry.Value)
		}
	}
	into := []reflect.Value{reflect.ValueOf(s).Elem()}
	ofKinds := map[string]bool{} // the settings of any kind
	for _, k := range r.kinds {
		own := k.New()
		if k.Name == name {
			s.Own = own
		}
		for _, part := range own.Rows() {
			v := reflect.ValueOf(part).Elem()
			if k.Name == name {
				into = append(into, v)
			}
			for row := range rows(v) {
				ofKinds[row] = true
			}
		}
	}
	unknown, known := r.object(path, entries, into...)
	for _, key := range unknown {
		_, what, _ := strings.Cut(key.Value, "_")
		i := slices.IndexFunc(known, func(k string) bool { return what != "" && strings.HasSuffix(k, "_"+what) })
		switch {
		case s.Own == nil && ofKinds[key.Value]: // the check of kind reports that it is missing or unknown
		case s.Own == nil:
			r.unknown(key, slices.Concat(known, slices.Sorted(maps.Keys(ofKinds))))
		case !ofKinds[key.Value]:
			r.unknown(key, known)
		case i >= 0: // token_file and key_file
			r.add(r.place(key), "%s: is called %s for servers of kind %s", join(path, key.Value), known[i], name)
		default:
			r.add(r.place(key), "%s: is not for servers of kind %s", join(path, key.Value), name)
		}
	}
	var all map[string]any
	if len(r.found) == before && yaml.NodeToValue(node, &all) == nil {
		text, _ := json.Marshal(all) // sorts the keys
		s.Entry = string(text)
	}
}

// isGroup reports whether settings of a type have settings of their own, and are not decoded from text.
func isGroup(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
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

// join makes the path of a row in a struct or mapping; "" is the struct itself.
func join(path, row string) string { return strings.Trim(path+"."+row, ".") }

// elem makes the path of an element of a list.
func elem(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// label names a path for people.
func label(path string) string { return cmp.Or(path, "the file") }

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
