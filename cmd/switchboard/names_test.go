package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"switchboard/handoff"
	"switchboard/web"
)

// TestNamesOfOneKey: a backend that names a new end user with each request leaves little behind, whatever it asks for.
func TestNamesOfOneKey(t *testing.T) {
	const key, workers = "assistants-key-0123456789", 8
	names, batch := scale(2_000, 50_000), scale(1_000, 2_500)
	r := start(t, func(p *plan) {
		assistant := web.NewKey("assistant", key)
		assistant.NamesCallers, assistant.Approve = true, handoff.ApproveAll
		assistant.KeyLimits.HandoffsPerMinute = 20
		p.Access = append(p.Access, assistant)
	})
	requests := []struct{ method, path, body string }{
		{"GET", "/fleet/handoffs", ""}, {"GET", "/fleet/questions", ""}, {"GET", "/fleet/sticky", ""},
		{"GET", "/fleet/status", ""}, {"GET", "/fleet/history", ""}, {"GET", "/fleet/handoffs/x", ""},
		{"GET", "/fleet/conversation", ""}, {"GET", "/fleet/updates", ""}, {"GET", "/fleet/events", ""},
		{"GET", "/v1/responses/resp_x", ""}, {"DELETE", "/fleet/sticky/bigpc", ""},
		{"POST", "/fleet/handoffs/x/stop", "{}"}, {"POST", "/fleet/questions/q1", `{"decision":"decline"}`},
		{"POST", "/fleet/handoffs", `{"server":"nowhere","prompt":"run the tests"}`},
		{"POST", "/v1/responses", `{"model":"nowhere","input":"run the tests"}`},
		{"POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
			`"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`},
	}
	ask := func(client *http.Client, n int) error {
		what := requests[n%len(requests)]
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel() // ends a stream
		req, err := http.NewRequestWithContext(ctx, what.method, r.base+what.path, strings.NewReader(what.body))
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+key)
		req.Header.Set("OpenAI-Safety-Identifier", fmt.Sprint("user", n))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		if resp.StatusCode == http.StatusBadRequest || resp.StatusCode == http.StatusUnauthorized ||
			resp.StatusCode >= http.StatusInternalServerError && what.path != "/mcp" { // its sessions have a bound
			err = fmt.Errorf("%s %s: %s", what.method, what.path, resp.Status)
		}
		if err == nil && what.path != "/fleet/events" {
			_, err = io.Copy(io.Discard, resp.Body)
		}
		_ = resp.Body.Close()
		return err
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	goroutines := 0
	for from := 0; from < names; from += batch {
		var all sync.WaitGroup
		for w := range workers {
			all.Go(func() {
				client := &http.Client{Transport: &http.Transport{}}
				defer client.CloseIdleConnections()
				for n := from + w; n < from+batch; n += workers {
					if err := ask(client, n); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		goroutines = max(goroutines, runtime.NumGoroutine())
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	heap := int64(after.HeapInuse+after.StackInuse) - int64(before.HeapInuse+before.StackInuse)
	t.Logf("%d goroutines, %d MiB more", goroutines, heap>>20)
	if goroutines > scale(600, 5000) || heap > scale[int64](16<<20, 150<<20) {
		t.Errorf("%d names: %d goroutines, %d MiB", names, goroutines, heap>>20)
	}
}
