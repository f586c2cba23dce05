package serverstest

import (
	"fmt"
	"reflect"
	"slices"

	"switchboard/servers"
)

// Check returns what a kind reports of settings that were put together in a test, as "row: problem". What is not zero
// counts as set. Paths stay as they are.
func Check(s servers.Settings) []string {
	r := &report{settings: s}
	s.Check(r, r)
	return r.found
}

// report implements [servers.Report] and [servers.Files].
type report struct {
	settings servers.Settings
	found    []string
}

func (r *report) Bad(row, format string, args ...any) {
	r.found = append(r.found, row+": "+fmt.Sprintf(format, args...))
}

func (r *report) OneOf(row, word string, known ...string) {
	if !slices.Contains(known, word) {
		r.Bad(row, "%q is unknown", word)
	}
}

func (r *report) IsSet(row string) bool {
	for _, part := range r.settings.Rows() {
		for field, value := range reflect.ValueOf(part).Elem().Fields() {
			if field.Tag.Get("yaml") == row && !value.IsZero() {
				return true
			}
		}
	}
	return false
}

func (r *report) Path(path string) string { return path }

func (r *report) Credential(name, file, variable string) servers.Credential {
	if file == "" && variable == "" {
		return servers.Credential{Name: name}
	}
	return servers.Credential{Name: name, Read: func() (string, error) { return "s3cret", nil }}
}

func (r *report) Apart(string, string) {}
