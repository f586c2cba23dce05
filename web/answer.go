package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"switchboard/handoff"
)

// Bounds of request bodies in bytes. An SDP offer of a browser has about 4 KiB, and a session with it (instructions,
// tools) some tens more.
const (
	maxJSON = 16 << 10
	maxCall = 256 << 10
	// maxResponse is for a prompt with an earlier conversation and pictures.
	maxResponse = 8 << 20
)

// writeJSON answers with v. After an error, nothing was written.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may have left
	return nil
}

// answer answers with a result, or returns the error.
func answer(w http.ResponseWriter, result any, err error) error {
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, result)
}

// done answers without content, or returns the error.
func done(w http.ResponseWriter, err error) error {
	if err == nil {
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// readBody reads the whole body into memory before a handler runs, bounded in size and in time. A route without a limit
// needs no body, and ignores a small one.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) error {
	if limit == 0 {
		limit = maxJSON
	}
	tooLarge := func() error {
		return handoff.Fault(handoff.CodeTooLarge, "at most "+strconv.FormatInt(limit, 10)+" bytes", "")
	}
	if r.ContentLength > limit { // before a client that sent Expect is told to continue
		return tooLarge()
	}
	bounded := http.MaxBytesReader(w, r.Body, limit)
	var body []byte
	var err error
	if r.ContentLength >= 0 {
		body = make([]byte, r.ContentLength)
		_, err = io.ReadFull(bounded, body)
	} else {
		body, err = io.ReadAll(bounded)
	}
	if err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return tooLarge()
		}
		return handoff.Fault(handoff.CodeMalformed, "the body did not arrive", err.Error())
	}
	arrived(w)
	r.Body = &heldBody{body}
	r.ContentLength = int64(len(body))
	return nil
}

// decode reads one JSON object into v. Unknown fields are an error.
func decode(r io.Reader, v any) error {
	body, err := io.ReadAll(r)
	if err != nil {
		return handoff.Fault(handoff.CodeMalformed, "the body did not arrive", err.Error())
	}
	if handoff.TooDeep(body) { // before it is parsed, because parsers recurse
		return handoff.Fault(handoff.CodeMalformed, "the body nests deeper than "+strconv.Itoa(handoff.MaxDepth), "")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return misread(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return handoff.Fault(handoff.CodeMalformed, "there is something after the JSON", "")
	}
	return nil
}

// misread returns the error for a body that cannot be decoded; it names the field.
func misread(err error) error {
	e := handoff.Fault(handoff.CodeMalformed, "the body is not the JSON that belongs here", err.Error())
	if typed, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && typed.Field != "" {
		e.Param, e.Subject = typed.Field, typed.Field+" is of the wrong type"
	}
	if quoted, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		e.Param = handoff.Clip(strings.Trim(quoted, `"`), 80)
		e.Subject = "nothing here is called " + e.Param
	}
	return e
}

// number reads an optional whole number from 1 to most from the query; it returns 0 if there is none.
func number(r *http.Request, name string, most int) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, handoff.Malformed(name, name+" is a number from 1 to "+strconv.Itoa(most))
	}
	return n, nil
}
