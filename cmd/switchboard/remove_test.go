package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchboard/sessions"
)

// TestRewrite: the file is restored if the service refuses its settings, and only then: after another error the service
// may have read them.
func TestRewrite(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		status     int
		answer     string
		text, fail string // of what is said
	}{
		"taken":       {200, `{"did":[]}`, "reads no file", ""},
		"refused":     {422, `{"error":{"code":"settings_wrong","message":"It is wrong."}}`, "", "left as it is: It is wrong."},
		"the store":   {503, `{"error":{"code":"store_away","message":"The store is away."}}`, "is not known (The store is away.)", ""},
		"half":        {200, `{"did":`, "is not known", ""},
		"no answer":   {0, "", "is not known", ""},
		"another one": {404, "no such page", "is not known", ""},
		"not let in":  {401, `{"error":{"code":"unauthorized","message":"No key."}}`, "is not known", ""},
		"a long time": {504, "", "is not known", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			env := func(name string) string { return map[string]string{"XDG_STATE_HOME": home}[name] }
			state, err := sessions.StateDir(env)
			must(t, err)
			l, err := net.Listen("unix", filepath.Join(state, controlFile))
			must(t, err)
			service := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(
				func(w http.ResponseWriter, r *http.Request) {
					if row.status == 0 {
						panic(http.ErrAbortHandler)
					}
					w.WriteHeader(row.status)
					_, _ = w.Write([]byte(row.answer))
				})}}
			service.Start()
			t.Cleanup(service.Close)
			file := filepath.Join(home, "switchboard.yaml")
			write(t, file, "before")
			told, err := rewrite(t.Context(), env, file, []byte("before"), []byte("after"))
			want := map[bool]string{true: "after", false: "before"}[row.fail == ""]
			if now, _ := os.ReadFile(file); string(now) != want {
				t.Errorf("the file is %q, want %q", now, want)
			}
			if (err != nil) != (row.fail != "") || err != nil && !strings.Contains(err.Error(), row.fail) || !strings.Contains(told.text, row.text) {
				t.Errorf("said %q, %v", told.text, err)
			}
		})
	}
}
