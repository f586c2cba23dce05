package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"switchboard/handoff"
	"switchboard/web/bundler"
)

// bundled is the index of the page that people load. Set once.
var bundled file

// loadReachable has every server of this process serve the page as people load it, but that tests reach its state: in
// it reached("store.js") promises a module. Apart, its 85 modules took half of what a test's login takes of the CPU.
func loadReachable() {
	pages, err := loadPages()
	if err != nil {
		panic(err)
	}
	bundled = pages.files["index.html"]
	page := map[string][]byte{}
	for name, f := range pages.files {
		page[name] = f.body
	}
	if page["index.html"], err = pageFiles.ReadFile("page/index.html"); err != nil {
		panic(err)
	}
	const reached = `
import * as store from "./store.js";
import * as work from "./state-work.js";
import * as notices from "./notices.js";
import * as wishes from "./wishes.js";
import * as saved from "./rich-markdown.js";
globalThis.reached = async (name) => ({ "store.js": store, "state-work.js": work, "notices.js": notices, "wishes.js": wishes, "rich-markdown.js": saved })[name];
`
	page["main.js"] = append(slices.Clone(page["main.js"]), reached...)
	made, err := bundler.Bundle(page)
	if err != nil {
		panic(err)
	}
	for name, body := range made {
		f := newFile(name, body)
		f.lasting = name != "index.html"
		pages.files[name] = f
	}
}

// traffic counts what is asked for of the page itself, and how many bytes go over the wire for it.
type traffic struct {
	http.ResponseWriter
	count *wire
}

type wire struct {
	mu    sync.Mutex
	asked []string // Guarded by mu
	bytes int      // Guarded by mu
}

func (t traffic) Write(b []byte) (int, error) {
	t.count.mu.Lock()
	t.count.bytes += len(b)
	t.count.mu.Unlock()
	return t.ResponseWriter.Write(b)
}

func (c *wire) take() (asked []string, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked, bytes = c.asked, c.bytes
	c.asked, c.bytes = nil, 0
	return asked, bytes
}

// serveBundled serves a world with the page as people load it, and counts what goes over the wire for the page.
func serveBundled(t *testing.T, w *world) (base string, count *wire) {
	t.Helper()
	count = &wire{}
	_, base = serveBehind(t, w, withVoice, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/" && !strings.HasPrefix(r.URL.Path, "/page/") {
				next.ServeHTTP(rw, r)
				return
			}
			count.mu.Lock()
			count.asked = append(count.asked, r.URL.Path)
			count.mu.Unlock()
			out := traffic{rw, count}
			if r.URL.Path != "/" {
				next.ServeHTTP(out, r)
				return
			}
			setHeaders(rw.Header(), r.Host) // the policy holds for it, too
			if err := (pages{files: map[string]file{"index.html": bundled}}).file(out, r, "index.html"); err != nil {
				t.Error(err)
			}
		})
	})
	return base, count
}

// The page comes in at most 6 requests and 130 KB; a browser that has it asks for one thing, and the page works.
func TestPageWeighsLittle(t *testing.T) {
	t.Parallel()
	w := newScene()
	base, count := serveBundled(t, w)
	p := openTab(t, startChromium(t, true), 1280, 800)
	p.open(base)
	p.Until(`document.querySelector("#login:not([hidden])")`)
	p.EnterKey(ownerKey)
	p.Until(`document.querySelectorAll(".card").length === 4`)
	p.Until(`(document.querySelector(".diff")?.scrollIntoView(), document.querySelector(".tok-key"))`) // the colours of code, which are loaded when they are seen
	asked, bytes := count.take()
	t.Logf("cold: %d bytes in %q", bytes, asked)
	if len(asked) > 6 || bytes > 130<<10 {
		t.Errorf("cold: %d bytes in %d requests", bytes, len(asked))
	}
	p.open(base + "/?warm")
	p.Until(`document.querySelectorAll(".card").length === 4`)
	if asked, bytes = count.take(); len(asked) != 1 || bytes > 8<<10 {
		t.Errorf("warm: %d bytes in %q", bytes, asked)
	}
	p.quiet()
}

// Hardly anything moves while the page comes up.
func TestPageStandsStill(t *testing.T) {
	t.Parallel()
	w := newScene()
	w.records[0].Items = slices.DeleteFunc(w.records[0].Items, func(i handoff.RecordItem) bool { return i.Kind == handoff.ItemPlan || i.Kind == handoff.ItemReview })
	p := loggedIn(t, w, 1440, 900, withVoice)
	p.Do(atFirst(`window.moved = 0; new PerformanceObserver((l) => { for (const e of l.getEntries()) { window.moved += e.value; (window.movers ??= []).push(...e.sources.map((s) => (s.node?.id || s.node?.className || s.node?.nodeName) + " " + Math.round(s.previousRect.top) + " to " + Math.round(s.currentRect.top))); } }).observe({ type: "layout-shift", buffered: true })`))
	// A busy machine may take longer to read the fleet than the page stays blank for, and then it moves.
	p.Do(atFirst(`((real) => { window.setTimeout = (f, ms, ...rest) => (ms === 1500 ? 0 : real(f, ms, ...rest)); })(window.setTimeout)`))
	for _, size := range [][2]int64{{1440, 900}, {390, 844}} {
		p.Size(size[0], size[1])
		p.open(p.base() + fmt.Sprint("/?again=", size[0]))
		p.Until(`document.querySelector("#app:not([hidden]) .machine") && document.querySelectorAll(".card").length === 4`)
		eval[bool](p, frames)
		if moved := eval[float64](p, `moved`); moved > 0.02 {
			t.Errorf("%v: layout shift %v: %q", size, moved, eval[[]string](p, `movers`))
		}
	}
}
