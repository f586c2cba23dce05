package serverstest

import (
	"fmt"
	"reflect"
	"slices"

	"switchboard/servers"
)

// Check returns the faults that a kind reports for settings, as "row: problem". A field that is not zero counts as set.
// Paths are not changed.
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
	if word != "" && !slices.Contains(known, word) {
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
