package web

import (
	"compress/gzip"
	"net/http"
	"strings"
)

// packed returns what an answer is written to: for the lists that the page reads, gzip where the browser takes it.
// They are text of which most repeats, and a day of it takes seconds on a phone. end is called once it is written.
func packed(w http.ResponseWriter, r *http.Request) (out http.ResponseWriter, end func()) {
	if r.Method != http.MethodGet || !strings.HasPrefix(r.URL.Path, "/fleet/") ||
		strings.HasSuffix(r.URL.Path, "/events") || !takesGzip(r) {
		return w, func() {}
	}
	p := &packing{ResponseWriter: w}
	return p, p.end
}

// A packing compresses an answer in JSON. It belongs to one request.
type packing struct {
	http.ResponseWriter
	gz *gzip.Writer // nil: nothing is compressed so far
}

func (p *packing) WriteHeader(status int) {
	h := p.Header()
	if h.Get("Content-Type") == "application/json" && status == http.StatusOK {
		h.Del("Content-Length")
		h.Set("Content-Encoding", "gzip")
		h.Add("Vary", "Accept-Encoding")
		p.gz, _ = gzip.NewWriterLevel(p.ResponseWriter, gzip.BestSpeed) // the level is one of gzip's
	}
	p.ResponseWriter.WriteHeader(status)
}

func (p *packing) Write(b []byte) (int, error) {
	if p.gz != nil {
		return p.gz.Write(b)
	}
	return p.ResponseWriter.Write(b)
}

// Unwrap is for [http.ResponseController].
func (p *packing) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p *packing) end() {
	if p.gz != nil {
		_ = p.gz.Close() // a client that left cannot be told
	}
}
