package tools

import (
	"encoding/json"
	"testing"
)

func TestReadTarget(t *testing.T) {
	for _, tc := range []struct {
		partial        string
		server, thread string
		ready          bool
	}{
		{``, "", "", false},
		{`{`, "", "", false},
		{`{"server":"big`, "", "", false},
		{`{"server":"bigpc"`, "", "", false}, // a thread may follow
		{`{"server":"bigpc","thr`, "", "", false},
		{`{"server":"bigpc","thread_id":"au`, "", "", false},
		{`{"server":"bigpc","thread_id":"auth"`, "bigpc", "auth", true},
		{`{"thread_id":"auth","server":"bigpc"`, "bigpc", "auth", true},
		{`{"server":" bigpc ","prompt"`, "bigpc", "", true},
		{`{"server":"bigpc","prom`, "", "", false},
		{`{"server":"bigpc","thread_id":null,"prompt":"ru`, "bigpc", "", true},
		{`{"server":"b\u0069gpc","prompt":"run`, "bigpc", "", true},
		{`{"prompt":"run`, "", "", true},
		{`{"server":7,"prompt":"run`, "", "", false},
		{`{"server":{"name":"x"},"prompt":"run`, "", "", false},
		{`{"sandbox":"danger","server":"bigpc","prompt":"run`, "", "", false},
		{`["bigpc"]`, "", "", false},
		{`"bigpc"`, "", "", false},
	} {
		got, ready := ReadTarget(tc.partial)
		if ready != tc.ready || got.Server != tc.server || got.Thread != tc.thread {
			t.Errorf("%s: %+v, %t", tc.partial, got, ready)
		}
	}
}

// FuzzReadTarget holds that a target read from a beginning is that of the whole request, at whatever byte
// it was read, and that nothing breaks it.
func FuzzReadTarget(f *testing.F) {
	f.Add("bigpc", "auth", "run the tests", 20, `{"server":"x`)
	f.Add("", "", "", 0, `{"server":"a","thread_id":"b","server":"c"`)
	f.Fuzz(func(t *testing.T, server, thread, prompt string, cut int, junk string) {
		ReadTarget(junk)
		whole, err := json.Marshal(struct {
			Server string `json:"server"`
			Thread string `json:"thread_id,omitempty"`
			Prompt string `json:"prompt"`
		}{server, thread, prompt})
		if err != nil {
			return
		}
		final, err := parsed[CodexArguments](Codex, string(whole))
		if err != nil {
			return
		}
		guess, ready := ReadTarget(string(whole[:abs(cut)%(len(whole)+1)]))
		if ready && (guess.Server != final.Server || guess.Thread != final.Thread) {
			t.Fatalf("guessed %+v of %+v", guess, final)
		}
		if _, ready := ReadTarget(string(whole)); !ready {
			t.Fatalf("the whole request is not readable: %s", whole)
		}
	})
}

func abs(n int) int {
	if n < 0 {
		return -(n + 1)
	}
	return n
}
