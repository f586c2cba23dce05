package main

import (
	"cmp"
	"encoding"
	"fmt"
	"reflect"
	"strings"

	"switchboard/servers"
)

// A settingRow is one row of the settings table.
type settingRow struct {
	path, flag, variable, def, doc string
}

// settingRows lists every setting, in the order of the file. All texts come from the tags of [settings] and of the
// servers' kinds.
func settingRows() []settingRow {
	flags := map[string]settingRow{}
	for field := range reflect.TypeFor[options]().Fields() {
		if path := field.Tag.Get("setting"); path != "" {
			name := cmp.Or(field.Tag.Get("name"), strings.ToLower(field.Name))
			flags[path] = settingRow{flag: "--" + name, variable: field.Tag.Get("env")}
		}
	}
	rows := fieldRows("", reflect.ValueOf(defaults()))
	for i, row := range rows {
		rows[i].flag, rows[i].variable = flags[row.path].flag, flags[row.path].variable
	}
	return rows
}

// fieldRows lists the settings in a struct, which is at path.
func fieldRows(path string, v reflect.Value) []settingRow {
	var rows []settingRow
	for field, value := range v.Fields() {
		name := field.Tag.Get("yaml")
		if name == "" || name == "-" {
			continue
		}
		at, kind := join(path, name), field.Type
		if kind.Kind() == reflect.Slice && kind.Elem().Kind() == reflect.Struct && !isText(kind.Elem()) {
			rows = append(rows, fieldRows(at+"[]", reflect.New(kind.Elem()).Elem())...)
			if kind.Elem() == reflect.TypeFor[servers.Spec]() {
				rows = append(rows, kindRows(at+"[]")...)
			}
			continue
		}
		if kind.Kind() == reflect.Struct && !isText(kind) {
			rows = append(rows, fieldRows(at, value)...)
			continue
		}
		def := field.Tag.Get("unset")
		if s, ok := value.Interface().(span); ok && s != 0 {
			def = "`" + s.String() + "`"
		} else if value.Kind() == reflect.Int && value.Int() != 0 {
			def = fmt.Sprintf("`%d`", value.Int())
		} else if value.Kind() == reflect.String && value.String() != "" {
			def = "`" + value.String() + "`"
		}
		var doc strings.Builder
		doc.WriteString(field.Tag.Get("doc"))
		if at == "servers[].kind" {
			for i, k := range kinds(nil, nil) {
				doc.WriteString([]string{": ", ", or "}[min(i, 1)] + k.Name + ", " + k.Doc)
			}
		}
		rows = append(rows, settingRow{path: at, def: def, doc: doc.String()})
	}
	return rows
}

// kindRows lists the settings that each kind of servers adds.
func kindRows(path string) []settingRow {
	var rows []settingRow
	for _, k := range kinds(nil, nil) {
		for _, part := range k.New().Rows() {
			for _, row := range fieldRows(path, reflect.ValueOf(part).Elem()) {
				row.doc = k.Name + ": " + row.doc
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// isText reports whether a type is decoded from text.
func isText(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}
