package web

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"switchboard/handoff"
)

// The page is in page; bundle has what browsers load of it, and is made anew after each change.
//
//go:generate go test -count=1 -run TestBundleIsCurrent ./bundler -update
//go:embed page bundle
var pageFiles embed.FS

// types are the media types of the page's files. The table of the operating system is not used, because on some
// machines it says text/plain for modules.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	".png":  "image/png",

	".webmanifest": "application/manifest+json",
}

// A file of the page. Set once.
type file struct {
	body    []byte
	small   func() []byte // returns body compressed by gzip, made at the first call; nil: it would not get smaller
	kind    string        // media type
	etag    string
	lasting bool // its name contains a hash of its content
}

func newFile(name string, body []byte) file {
	f := file{body: body, kind: types[path.Ext(name)], etag: sumOf(body)}
	if path.Ext(name) == ".png" {
		return f
	}
	f.small = sync.OnceValue(func() []byte {
		var small bytes.Buffer
		w, _ := gzip.NewWriterLevel(&small, gzip.BestCompression) // fails only for an invalid level
		_, _ = w.Write(body)
		_ = w.Close()
		return small.Bytes()
	})
	return f
}

// sumOf returns a short hash of a file's content.
func sumOf(body []byte) string {
	sum := sha256.Sum256(body)
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// pages serves the page and the help, which are public. Set once.
type pages struct {
	files map[string]file // by name
	help  []helpPage      // in the order of their names
}

// loadPages reads the embedded files once in a process, at the first request for one, so that they do not delay the
// start. The index is that of the bundle; the page's modules can be had one by one, too.
var loadPages = sync.OnceValues(func() (pages, error) {
	files := map[string]file{}
	for _, dir := range []string{"page", "bundle"} {
		entries, err := pageFiles.ReadDir(dir)
		if err != nil {
			return pages{}, err
		}
		for _, e := range entries {
			body, err := pageFiles.ReadFile(path.Join(dir, e.Name()))
			if err != nil {
				return pages{}, err
			}
			f := newFile(e.Name(), body)
			f.lasting = dir == "bundle" && path.Ext(e.Name()) != ".html"
			files[e.Name()] = f
		}
	}
	help, err := loadHelp()
	return pages{files, help}, err
})

// ofPage returns a handler that needs the pages.
func ofPage(serve func(pages, http.ResponseWriter, *http.Request, handoff.Grant) error) handler {
	return func(w http.ResponseWriter, r *http.Request, grant handoff.Grant) error {
		p, err := loadPages()
		if err != nil {
			return err
		}
		return serve(p, w, r, grant)
	}
}

// ofFile returns a handler for a file of the page; "" is the file that the request names.
func ofFile(name string) handler {
	return ofPage(func(p pages, w http.ResponseWriter, r *http.Request, _ handoff.Grant) error {
		return p.file(w, r, cmp.Or(name, r.PathValue("file")))
	})
}

// file serves a file of the page. Browsers cache files with a hash in their name for good, and pictures for a day. They
// request the others each time, and get 304 if nothing changed, so that they never mix files of two versions.
func (p pages) file(w http.ResponseWriter, r *http.Request, name string) error {
	f, ok := p.files[name]
	if !ok {
		return handoff.Fault(handoff.CodeNotFound, "file "+handoff.Clip(name, 80), "")
	}
	w.Header().Set("Content-Type", f.kind)
	switch ext := path.Ext(name); {
	case f.lasting:
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	case ext == ".png" || ext == ".svg" || ext == ".webmanifest":
		w.Header().Set("Cache-Control", "public, max-age=86400")
	default:
		w.Header().Set("Cache-Control", "no-cache")
	}
	w.Header().Set("Vary", "Accept-Encoding")
	body, etag := f.body, f.etag
	if f.small != nil && takesGzip(r) {
		w.Header().Set("Content-Encoding", "gzip")
		body, etag = f.small(), etag+"-gzip"
	}
	w.Header().Set("ETag", `"`+etag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
	return nil
}

// takesGzip reports whether a request accepts gzip, for the whole of a file.
func takesGzip(r *http.Request) bool {
	if r.Header.Get("Range") != "" {
		return false
	}
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		if name, q, _ := strings.Cut(strings.ReplaceAll(part, " ", ""), ";"); name == "gzip" && !strings.HasPrefix(q, "q=0") {
			return true
		}
	}
	return false
}
