package main

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"switchboard/cmd/switchboard/cli"
	"switchboard/servers"
)

var update = flag.Bool("update", false, "write what is generated into the files that hold it")

const readme = "../../README.md"

// settingsPage has the table of settings, which is written by hand.
const settingsPage = "../../web/help/3-settings.md"

// A settingRow is a row of the table of settings.
type settingRow struct{ path, flag, variable, def, doc string }

// pageRows reads the table.
func pageRows(t *testing.T) (rows []settingRow) {
	t.Helper()
	data, err := os.ReadFile(settingsPage)
	must(t, err)
	_, table, _ := strings.Cut(string(data), "<!-- settings -->\n")
	table, _, found := strings.Cut(table, "<!-- /settings -->")
	if !found {
		t.Fatal("the page has no table of settings")
	}
	for _, line := range strings.Split(strings.TrimSpace(table), "\n")[2:] {
		cells := strings.Split(strings.Trim(strings.ReplaceAll(line, `\|`, "\x00"), "|"), "|")
		if len(cells) != 5 {
			t.Fatalf("%d cells in %q", len(cells), line)
		}
		for i, text := range cells {
			cells[i] = strings.ReplaceAll(strings.TrimSpace(text), "\x00", "|")
		}
		bare := func(i int) string { return strings.Trim(cells[i], "`") }
		rows = append(rows, settingRow{bare(0), bare(1), bare(2), cells[3], cells[4]})
	}
	return rows
}

// TestSettingsTable: the table on the page names each setting that there is, for each kind of servers that has it, with
// its flag, its variable and its default; and it names no others.
func TestSettingsTable(t *testing.T) {
	byPath := map[string]cli.Flag{}
	flags := new(console).commands().Flags
	for i, path := range []string{"", "listen", "redis", "model.url", "model.name", ""} {
		if path != "" {
			byPath[path] = flags[i]
		}
	}
	want := map[string][]settingRow{} // two transports of a kind may have a setting of the same name
	add := func(path, kind, def string) {
		row := settingRow{path: path, def: def}
		if f, ok := byPath[path]; ok {
			row.flag, row.variable, row.doc = "--"+f.Name, f.Env, f.Help
		}
		want[path+" "+kind] = append(want[path+" "+kind], row)
	}
	settingsIn("", "", reflect.ValueOf(defaults()), add)
	settingsIn("keys[]", "", reflect.ValueOf(keySetting{}), add)
	settingsIn("servers[]", "", reflect.ValueOf(servers.Spec{}), add)
	for _, k := range kinds(nil, nil) {
		for _, part := range k.New().Rows() {
			settingsIn("servers[]", k.Name, reflect.ValueOf(part).Elem(), add)
		}
	}
	for _, f := range []cli.Flag{flags[0], flags[5]} {
		want["--"+f.Name] = []settingRow{{flag: "--" + f.Name, variable: f.Env, doc: f.Help}}
	}
	want[openAIKey], want[ownerKey] = []settingRow{{variable: openAIKey}}, []settingRow{{variable: ownerKey}}
	for _, row := range pageRows(t) {
		kind, _, _ := strings.Cut(row.doc, ": ")
		if _, ok := kindNamed(kinds(nil, nil), kind); !ok || !strings.HasPrefix(row.path, "servers[].") {
			kind = ""
		}
		name := row.path + " " + kind
		if row.path == "" {
			name = row.flag + row.variable
			if row.flag != "" {
				name = row.flag
			}
		}
		if len(want[name]) == 0 {
			t.Errorf("%s: there is no such setting, or it has a row too many", name)
			continue
		}
		is := want[name][0]
		want[name] = want[name][1:]
		switch {
		case row.flag != is.flag || row.variable != is.variable:
			t.Errorf("%s: flag %q and variable %q, want %q and %q", name, row.flag, row.variable, is.flag, is.variable)
		case is.def != "" && row.def != is.def:
			t.Errorf("%s: default %s, want %s", name, row.def, is.def)
		case row.doc == "" || is.doc != "" && row.doc != is.doc || strings.HasSuffix(row.doc, "."):
			t.Errorf("%s: %q is no phrase, or not that of the flag, %q", name, row.doc, is.doc)
		}
	}
	for name, rows := range want {
		if len(rows) == 0 {
			continue
		}
		t.Errorf("%s has no row on the page of settings", name)
	}
	for _, k := range kinds(nil, nil) {
		if text := k.Name + ", " + k.Doc; !strings.Contains(fmt.Sprint(pageRows(t)), text) {
			t.Errorf("the page does not say %q", text)
		}
	}
}

// settingsIn calls add with each setting in a struct, and its default if that is no zero.
func settingsIn(path, kind string, v reflect.Value, add func(path, kind, def string)) {
	for row, value := range rows(v) {
		at := join(path, row)
		switch of := value.Type(); {
		case isGroup(of):
			settingsIn(at, kind, value, add)
		case of.Kind() == reflect.Slice && isGroup(of.Elem()): // a list of keys or servers
		case of.Kind() == reflect.Pointer || value.IsZero() || of == reflect.TypeFor[secret]():
			add(at, kind, "")
		default:
			add(at, kind, fmt.Sprintf("`%v`", value))
		}
	}
}
