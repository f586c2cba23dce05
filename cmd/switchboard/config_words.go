package main

import (
	"cmp"
	"fmt"
	"net/netip"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// join makes the path of a key in a mapping.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// label names a path to a person.
func label(path string) string {
	return cmp.Or(path, "the file")
}

// kindOf names what stands in the file.
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

// meant names what a scalar type is written like; "" is any text.
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
	}
	return ""
}

// suggest returns "; did you mean …?" for a near miss, else the words there are.
func suggest(word string, known []string) string {
	best, least := "", max(2, len(word)/3)+1
	for _, k := range known {
		if n := distance(strings.ToLower(word), k); n < least {
			best, least = k, n
		}
	}
	if best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return "; there is " + strings.Join(known, ", ")
}

// distance is the number of letters to add, drop or change to make a of b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
