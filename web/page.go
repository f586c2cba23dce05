package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io/fs"
	"net/http"
	"path"
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
	body []byte
	kind string
	etag string
}

// pages serve the page and the help, which are no secret. Set once.
type pages struct {
	files map[string]file // by name
	help  []helpPage      // in their order
}

// loadPages reads the embedded files and names their versions.
func loadPages() (pages, error) {
	files := map[string]file{}
	err := fs.WalkDir(pageFiles, "page", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := pageFiles.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		files[path.Base(name)] = file{
			body: body, kind: types[path.Ext(name)], etag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`,
		}
		return nil
	})
	if err != nil {
		return pages{}, err
	}
	help, err := loadHelp()
	return pages{files, help}, err
}

func (p pages) page(w http.ResponseWriter, r *http.Request, _ handoff.Grant) error {
	return p.file(w, r, "index.html")
}

func (p pages) asset(w http.ResponseWriter, r *http.Request, _ handoff.Grant) error {
	return p.file(w, r, r.PathValue("file"))
}

// worker serves the service worker, whose scope is the whole page.
func (p pages) worker(w http.ResponseWriter, r *http.Request, _ handoff.Grant) error {
	return p.file(w, r, "worker.js")
}

// file serves a file of the page. Browsers ask each time and get 304 while nothing changed, so that a new
// version is never mixed with an old one for long.
func (p pages) file(w http.ResponseWriter, r *http.Request, name string) error {
	f, ok := p.files[name]
	if !ok {
		return handoff.Fault(handoff.CodeNotFound, "file "+handoff.Clip(name, 80), "")
	}
	w.Header().Set("Content-Type", f.kind)
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", f.etag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.body))
	return nil
}
