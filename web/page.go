package web

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"embed"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"switchboard/handoff"
)

//go:embed page
var pageFiles embed.FS

// types are the kinds of files of the page; there are no others. The machine's own table is not asked,
// because on some machines it says text/plain for modules.
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
	small   func() []byte // body compressed by gzip when somebody first asks; nil: it does not get smaller
	kind    string
	etag    string
	lasting bool // its name changes with what is in it
}

func newFile(name string, body []byte) file {
	f := file{body: body, kind: types[path.Ext(name)], etag: sumOf(body)}
	if path.Ext(name) == ".png" {
		return f
	}
	f.small = sync.OnceValue(func() []byte {
		var small bytes.Buffer
		w, _ := gzip.NewWriterLevel(&small, gzip.BestCompression) // the level is one of gzip's
		_, _ = w.Write(body)
		_ = w.Close()
		return small.Bytes()
	})
	return f
}

// pages serve the page and the help, which are no secret. Set once.
type pages struct {
	files map[string]file // by name
	help  []helpPage      // in their order
}

// loadPages reads the embedded files, which are the same for every server of the process, when somebody first asks for
// one: a start does not wait for them.
var loadPages = sync.OnceValues(func() (pages, error) {
	files := map[string]file{}
	err := fs.WalkDir(pageFiles, "page", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := pageFiles.ReadFile(name)
		if err != nil {
			return err
		}
		files[path.Base(name)] = newFile(name, body)
		return nil
	})
	if err == nil {
		err = bundle(files)
	}
	if err != nil {
		return pages{}, err
	}
	help, err := loadHelp()
	return pages{files, help}, err
})

// ofPage serves from the page's files.
func ofPage(serve func(pages, http.ResponseWriter, *http.Request, handoff.Grant) error) handler {
	return func(w http.ResponseWriter, r *http.Request, grant handoff.Grant) error {
		p, err := loadPages()
		if err != nil {
			return err
		}
		return serve(p, w, r, grant)
	}
}

// ofFile serves a file of the page; "": the one that is asked for.
func ofFile(name string) handler {
	return ofPage(func(p pages, w http.ResponseWriter, r *http.Request, _ handoff.Grant) error {
		return p.file(w, r, cmp.Or(name, r.PathValue("file")))
	})
}

// file serves a file of the page. Browsers keep what has a name of its own for ever and pictures for a day. For the
// others they ask each time and get 304 while nothing changed, so that a new version is never mixed with an old one.
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

// takesGzip reports whether a browser takes the whole of a file, compressed.
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
