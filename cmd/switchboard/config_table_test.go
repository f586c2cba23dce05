package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what is generated into the files that hold it")

const readme = "../../README.md"

// settingsPage has the table of settings.
const settingsPage = "../../web/help/3-settings.md"

var tableRegion = regexp.MustCompile(`(?s)(<!-- settings -->\n)(.*?)(<!-- /settings -->)`)

// The help's table of settings is the one of the code. -update writes it.
func TestReadmeSettings(t *testing.T) {
	data, err := os.ReadFile(settingsPage)
	if errors.Is(err, fs.ErrNotExist) {
		t.Log("there is no page of settings yet")
		return
	}
	must(t, err)
	text := string(data)
	found := tableRegion.FindAllStringSubmatch(text, -1)
	if len(found) != 1 {
		t.Fatalf("the page of settings has %d regions <!-- settings --> … <!-- /settings -->, want one", len(found))
	}
	if found[0][2] == settingsTable() {
		return
	}
	if !*update {
		t.Fatal("the settings in the page of help are not those of the code: go test ./cmd/switchboard -run Readme -update")
	}
	text = strings.Replace(text, found[0][0], found[0][1]+settingsTable()+found[0][3], 1)
	must(t, os.WriteFile(settingsPage, []byte(text), 0o644))
}

// Every setting is told, and nothing else is.
func TestSettingsTable(t *testing.T) {
	for _, row := range settingRows() {
		if row.doc == "" || strings.HasPrefix(row.doc, strings.ToUpper(row.doc[:1])) &&
			!strings.HasPrefix(row.doc, "Redis") && !strings.HasPrefix(row.doc, "SHA") ||
			strings.HasSuffix(row.doc, ".") {
			t.Errorf("%s: doc %q is missing or no phrase", row.path, row.doc)
		}
	}
	table := settingsTable()
	for _, want := range []string{
		"| `listen` | `--listen` | `SWITCHBOARD_LISTEN` | `127.0.0.1:8080` | ",
		"| `redis` | `--redis` | `REDIS_URL` | a file | ",
		"| `model.name` | `--model` | `SWITCHBOARD_MODEL` | `gpt-realtime-2.1` | ",
		"| `model.url` | `--model-url` | `SWITCHBOARD_MODEL_URL` | the simulator without a key, else OpenAI | ",
		"|  | `--config` | `SWITCHBOARD_CONFIG` | ", "|  | `--codex` |  | ",
		"|  |  | `OPENAI_API_KEY` | ", "|  |  | `SWITCHBOARD_KEY` | ",
		"| `approvals.ask_again` |  |  | `1m` | ", "| `approvals.give_up` |  |  | `30m` | ",
		"| `speech.updates` |  |  | `milestones` | ",
		"| `notify.webhook` |  |  | nobody is told | ", "| `servers[].projects` |", "| `keys[].key_sha256` |",
		"| `media.advertise` |", "| `tls.cert_file` |",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
	for line := range strings.Lines(table) {
		if n := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|"); n != 6 {
			t.Errorf("%d bars in %q", n, line)
		}
	}
}

// settingsTable renders the settings as the README shows them.
func settingsTable() string {
	var b strings.Builder
	b.WriteString("| setting | flag | environment | default | what |\n|---|---|---|---|---|\n")
	row := func(r settingRow) {
		code := func(text string) string {
			if text == "" {
				return ""
			}
			return "`" + text + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", code(r.path), code(r.flag), code(r.variable), cell(r.def),
			cell(r.doc))
	}
	t := reflect.TypeFor[options]()
	config, _ := t.FieldByName("Config")
	codex, _ := t.FieldByName("Codex")
	row(settingRow{flag: "--config", variable: config.Tag.Get("env"), doc: config.Tag.Get("help")})
	for _, r := range settingRows() {
		row(r)
	}
	row(settingRow{flag: "--codex", doc: codex.Tag.Get("help")})
	for _, v := range variables() {
		row(settingRow{variable: v[0], doc: v[1]})
	}
	return b.String()
}

// cell makes text fit into a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// variables are the environment variables that are no setting of the file.
func variables() [][2]string {
	return [][2]string{
		{openAIKey, "key for OpenAI; it goes to api.openai.com alone"},
		{ownerKey, "a key of principal owner"},
	}
}
