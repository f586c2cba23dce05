package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/servers"
	"switchboard/servers/responses"
)

// chatter is a model that writes one answer as fast as it is read, in as many pieces as the message says.
func chatter(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // half a body has no number
	n, pause := 0, 0
	if i := bytes.LastIndex(body, []byte("pieces: ")); i >= 0 {
		_, _ = fmt.Sscanf(string(body[i:]), "pieces: %d %d", &n, &pause)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	write := func(kind, data string) {
		_, _ = fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q,%s}\n\n", kind, kind, data) // a client that left ends the benchmark
		_ = control.Flush()
	}
	write("response.created", `"response":{"id":"resp_1","status":"in_progress"}`)
	write("response.output_item.added", `"output_index":0,"item":{"type":"message","id":"m","role":"assistant","content":[]}`)
	for i := range n {
		write("response.output_text.delta", fmt.Sprintf(`"item_id":"m","output_index":0,"content_index":0,"delta":"word %04d "`, i))
		time.Sleep(time.Duration(pause) * time.Millisecond)
	}
	message := fmt.Sprintf(`{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":%q,"annotations":[]}]}`, chattered(n))
	write("response.output_item.done", `"output_index":0,"item":`+message)
	write("response.completed", `"response":{"id":"resp_1","status":"completed","output":[`+message+`]}`)
}

func chattered(n int) string {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, "word %04d ", i)
	}
	return all.String()
}

// BenchmarkStreams is how many pieces of answers arrive in a second, in one stream and in 200 at once, each of them
// work of its own, from a model that writes as fast as it can or pauses between pieces. They begin at most eight at a
// time. The floor is the model alone, over HTTP as well. A service with more to do than it can
// writes pieces together: events/piece.
func BenchmarkStreams(b *testing.B) {
	model := httptest.NewServer(http.HandlerFunc(chatter))
	b.Cleanup(model.Close)
	work := b.TempDir()
	r := start(b, func(p *plan) {
		p.Servers = []servers.Spec{{
			Name: "bigpc", Kind: responses.Name, Dir: work,
			Own: &responses.Settings{URL: model.URL + "/v1", Model: "m", Workspace: work, Key: func() (string, error) { return "k3y", nil }},
		}}
	})
	r.up("bigpc")
	for _, c := range []struct{ n, pieces, pause int }{{1, 5000, 0}, {200, 200, 0}, {200, 100, 20}} {
		n, pieces := c.n, c.pieces
		for name, base := range map[string]string{"floor": model.URL, "service": r.base} {
			b.Run(fmt.Sprintf("%d/%dms/%s", n, c.pause, name), func(b *testing.B) {
				events := 0
				for b.Loop() {
					var all sync.WaitGroup
					var mu sync.Mutex
					for range n {
						all.Go(func() {
							got := readStream(b, base+"/v1/responses", pieces, c.pause)
							mu.Lock()
							defer mu.Unlock()
							events += got
						})
					}
					all.Wait()
				}
				b.ReportMetric(float64(b.N*n*pieces)/b.Elapsed().Seconds(), "pieces/s")
				b.ReportMetric(float64(events)/float64(b.N*n*pieces), "events/piece")
			})
		}
	}
}

// begin bounds how many streams begin at the same moment.
var begin = make(chan struct{}, 8)

// readStream reads a stream to its end and counts its deltas.
func readStream(b *testing.B, url string, pieces, pause int) int {
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url, strings.NewReader(fmt.Sprintf(`{"model":"bigpc","input":"pieces: %d %d","stream":true}`, pieces, pause)))
	if err != nil {
		b.Error(err)
		return 0
	}
	req.Header.Set("Authorization", "Bearer "+testKey)
	begin <- struct{}{}
	resp, err := http.DefaultClient.Do(req)
	<-begin
	if err != nil {
		b.Error(err)
		return 0
	}
	defer func() { _ = resp.Body.Close() }() // only read from
	data, err := io.ReadAll(resp.Body)
	if err != nil || !bytes.Contains(data, []byte("event: response.completed\n")) {
		b.Errorf("%v: %d bytes, ends with %.300s", err, len(data), data[max(len(data)-300, 0):])
	}
	return bytes.Count(data, []byte("event: response.output_text.delta\n"))
}
