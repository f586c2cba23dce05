package web

import (
	"compress/gzip"
	"net/http"
	"strings"
)

// packed returns the writer for an answer. The lists that the page reads are compressed, if the browser accepts gzip:
// they are long and repetitive, and would take seconds on a phone. end must be called when the answer is written.
func packed(w http.ResponseWriter, r *http.Request) (out http.ResponseWriter, end func()) {
	if r.Method != http.MethodGet || !strings.HasPrefix(r.URL.Path, "/fleet/") ||
		strings.HasSuffix(r.URL.Path, "/events") || !takesGzip(r) {
		return w, func() {}
	}
	p := &gzipWriter{ResponseWriter: w}
	return p, p.end
}

// A gzipWriter compresses an answer in JSON. It belongs to one request.
type gzipWriter struct {
	http.ResponseWriter
	gz *gzip.Writer // nil: the answer is not compressed
}

// WriteHeader implements [http.ResponseWriter].
func (p *gzipWriter) WriteHeader(status int) {
	h := p.Header()
	if h.Get("Content-Type") == "application/json" && status == http.StatusOK {
		h.Del("Content-Length")
		h.Set("Content-Encoding", "gzip")
		h.Add("Vary", "Accept-Encoding")
		p.gz, _ = gzip.NewWriterLevel(p.ResponseWriter, gzip.BestSpeed) // fails only for an invalid level
	}
	p.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (p *gzipWriter) Write(b []byte) (int, error) {
	if p.gz != nil {
		return p.gz.Write(b)
	}
	return p.ResponseWriter.Write(b)
}

// Unwrap returns the writer for [http.ResponseController].
func (p *gzipWriter) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p *gzipWriter) end() {
	if p.gz != nil {
		_ = p.gz.Close() // fails if the client has left
	}
}
