package web

import (
	"compress/gzip"
	"encoding/json"
	"net/http"
	"testing"
)

// TestListsArePacked: lists are compressed for clients that accept gzip, with the same content; errors, changes and
// streams are not.
func TestListsArePacked(t *testing.T) {
	t.Parallel()
	w := newScene()
	s := newServer(t, w, nil)
	ask := func(method, path, encoding string) *http.Response {
		return ask(s, method, path, "", func(r *http.Request) { r.Header.Set("Accept-Encoding", encoding) }).Result()
	}
	var plain, packed struct{ Items []brief }
	if err := json.NewDecoder(ask("GET", "/fleet/handoffs", "").Body).Decode(&plain); err != nil {
		t.Fatal(err)
	}
	got := ask("GET", "/fleet/handoffs", "br, gzip")
	if h := got.Header; h.Get("Content-Encoding") != "gzip" || h.Get("Content-Length") != "" || h.Get("Vary") == "" {
		t.Errorf("%v", h)
	}
	r, err := gzip.NewReader(got.Body)
	if err == nil {
		err = json.NewDecoder(r).Decode(&packed)
	}
	if err != nil || len(packed.Items) != len(plain.Items) || len(packed.Items) == 0 {
		t.Errorf("%d pieces of work, want %d: %v", len(packed.Items), len(plain.Items), err)
	}
	for _, c := range [][3]string{
		{"GET", "/fleet/handoffs", "identity"}, {"GET", "/fleet/handoffs/none", "gzip"}, {"POST", "/fleet/handoffs/h1/stop", "gzip"}, {"GET", "/healthz", "gzip"},
	} {
		if got := ask(c[0], c[1], c[2]); got.Header.Get("Content-Encoding") != "" {
			t.Errorf("%v is compressed", c)
		}
	}
}
