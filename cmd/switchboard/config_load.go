package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"switchboard/servers"
)

// loadSettings reads the configuration: flag over environment over file over default. Its error is
// [problems], all of them.
func loadSettings(o *options, env func(string) string) (*settings, error) {
	file, at := o.configFile()
	var data []byte
	if file != "" {
		var err error
		if data, err = os.ReadFile(file); err != nil {
			return nil, problems{{at, "read the configuration: " + err.Error()}}
		}
	}
	return settingsOf(o, env, file, data, kinds(nil))
}

// codexFlag is the place of the server that --codex adds.
var codexFlag = place{name: "--codex"}

// settingsOf is loadSettings of a file with this text, whose servers are of these kinds; "" for no file.
func settingsOf(
	o *options, env func(string) string, file string, data []byte, kinds []servers.Kind,
) (*settings, error) {
	s := defaults()
	d := &decoder{places: map[string]place{}, kinds: kinds}
	dir := "."
	if file != "" {
		d.file, s.File, dir = file, file, filepath.Dir(file)
		d.decode(data, &s)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, problems{{place{name: defaultFile}, err.Error()}}
	}
	for _, over := range o.overrides() {
		setText(&s, over.path, over.text)
		d.places[over.path] = over.at
	}
	if o.Codex {
		d.places[elem("servers", len(s.Servers))] = codexFlag
		s.Servers = append(s.Servers, localServer())
	}
	c := &checker{s: &s, kinds: kinds, places: d.places, env: env, dir: dir}
	if file != "" {
		c.ours = []string{filepath.Join(dir, filepath.Base(file))}
	}
	c.all()
	if found := append(d.found, c.found...); len(found) > 0 {
		return nil, found.sorted()
	}
	return &s, nil
}

// setText sets the text setting at a path of the file.
func setText(s *settings, path, text string) {
	v := reflect.ValueOf(s).Elem()
	for part := range strings.SplitSeq(path, ".") {
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("yaml") == part {
				v = v.Field(i)
				break
			}
		}
	}
	if v.Kind() == reflect.String {
		v.SetString(text)
		return
	}
	var value secret
	if text != "" {
		value = newSecret(text)
	}
	v.Set(reflect.ValueOf(value))
}

// maxSecret bounds the file of a key.
const maxSecret = 4096

// readSecret reads a key or token from a file: its text without surrounding space.
func readSecret(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // only read from
	data, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(data))
	if text == "" {
		return "", errors.New(path + " is empty")
	}
	if len(data) > maxSecret || strings.ContainsAny(text, "\r\n\x00") {
		return "", errors.New(path + " has more in it than one key")
	}
	return text, nil
}
