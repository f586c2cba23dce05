package main

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// endless is a picture without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'A'
	}
	return len(p), nil
}

// TestLargeBodiesAtOnce: 45 requests with 8 MiB each, all at once and with no limit on how much work may be given, stay
// within 300 MiB. Those that find no room are told to come back.
func TestLargeBodiesAtOnce(t *testing.T) {
	t.Parallel()
	const at, most, size = 45, 300 << 20, 8<<20 - 1000
	s := &site{t: t, config: config(t, "limits: {handoffs_per_minute: 0}\n"), state: t.TempDir()}
	c := s.start()
	c.up("bigpc")
	head, tail := `{"model":"bigpc","input":[{"role":"user","content":[{"type":"input_text","text":"which branch is it?"},{"type":"input_image","image_url":"data:image/png;base64,`, `"}]}]}`
	codes := make([]int, at)
	var all sync.WaitGroup
	for i := range codes {
		all.Go(func() {
			body := io.MultiReader(strings.NewReader(head), io.LimitReader(endless{}, size), strings.NewReader(tail))
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.base+"/v1/responses", body)
			if err != nil {
				t.Error(err)
				return
			}
			req.ContentLength = int64(len(head) + size + len(tail))
			req.Header.Set("Authorization", "Bearer "+testKey)
			resp, err := http.DefaultClient.Do(req)
			if err != nil { // refused while it still sent
				return
			}
			defer resp.Body.Close()
			_, _ = io.Copy(io.Discard, resp.Body) // the status says it
			if codes[i] = resp.StatusCode; codes[i] == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") == "" {
				t.Error("it is not told when to come back")
			}
		})
	}
	all.Wait()
	served := 0
	for _, code := range codes {
		if code == http.StatusOK {
			served++
		}
	}
	if served == 0 {
		t.Errorf("nobody was served: %v", codes)
	}
	status, text := c.ask(http.MethodGet, "/metrics", "")
	_, value, found := strings.Cut(string(text), "\ngo_memstats_heap_sys_bytes ")
	value, _, _ = strings.Cut(value, "\n")
	heap, err := strconv.ParseFloat(value, 64)
	if status != http.StatusOK || !found || err != nil {
		t.Fatalf("%d, %v in %.300s", status, err, text)
	}
	t.Logf("%d of %d served; the heap has taken %.0f MiB", served, at, heap/(1<<20))
	if heap > most {
		t.Errorf("the heap has taken %.0f MiB, want at most %d", heap/(1<<20), most>>20)
	}
}
