package web

import (
	"io"
	"net/http"
	"path"
	"regexp"
	"strings"
	"testing"
)

func TestPageIsServed(t *testing.T) {
	s := newServer(t, newWorld(), nil)
	rec := ask(s, "GET", "/", "", func(r *http.Request) { r.Header.Del("Authorization") })
	if rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), "<title>Switchboard") {
		t.Fatalf("got %d %s", rec.Code, rec.Body)
	}
	etag := rec.Header().Get("ETag")
	if etag == "" || rec.Header().Get("Cache-Control") != "no-cache" || rec.Header().Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("headers %v", rec.Header())
	}
	again := ask(s, "GET", "/", "", func(r *http.Request) { r.Header.Set("If-None-Match", etag) })
	if again.Code != http.StatusNotModified || again.Body.Len() > 0 {
		t.Errorf("asked again: %d", again.Code)
	}
	csp := rec.Header().Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "script-src 'self';", "style-src 'self';", "connect-src 'self' ws://127.0.0.1:8080", "frame-ancestors 'none'"} {
		if !strings.Contains(csp, part) {
			t.Errorf("policy %q lacks %q", csp, part)
		}
	}
	for name, part := range map[string]string{
		"Permissions-Policy": "microphone=(self)", "Cross-Origin-Opener-Policy": "same-origin", "Referrer-Policy": "no-referrer",
		"X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin",
	} {
		if got := rec.Header().Get(name); !strings.Contains(got, part) {
			t.Errorf("%s is %q, want %q", name, got, part)
		}
	}
}

var (
	inline  = regexp.MustCompile(`(?i)<script[^>]*>[^<]|<style|\sstyle=|\son[a-z]+=|javascript:`)
	foreign = regexp.MustCompile(`^/*[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}`) // what is behind two slashes
	loads   = regexp.MustCompile(`(?:from|import)\s+"\./([^"]+)"|(?:href|src)="page/([^"]+)"|url\("?([a-z][^")]+)"?\)|@import "([^"]+)"`)
)

// risky is what makes markup or code of text.
var risky = []string{
	"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "createContextualFragment",
}

// The page is whole, loads nothing from elsewhere, and never treats text as markup.
func TestPageFiles(t *testing.T) {
	s := newServer(t, newWorld(), nil)
	pages, err := loadPages()
	if err != nil || len(pages.files) == 0 {
		t.Fatal("no files", err)
	}
	for name, f := range pages.files {
		text := string(f.body)
		if f.kind == "" {
			t.Errorf("%s has a kind that is not served", name)
		}
		if n := strings.Count(text, "\n"); n > 500 {
			t.Errorf("%s has %d lines, want at most 500", name, n)
		}
		if path.Ext(name) == ".html" && inline.MatchString(text) {
			t.Errorf("%s has inline script or style: %q", name, inline.FindString(text))
		}
		for _, bad := range risky {
			if path.Ext(name) == ".js" && strings.Contains(text, bad) {
				t.Errorf("%s uses %s", name, bad)
			}
		}
		for _, behind := range strings.Split(strings.ReplaceAll(text, "http://www.w3.org/2000/svg", ""), "//")[1:] {
			if bad := foreign.FindString(behind); bad != "" {
				t.Errorf("%s names %s", name, bad)
			}
		}
		for _, m := range loads.FindAllStringSubmatch(text, -1) {
			if want := strings.TrimPrefix(m[1]+m[2]+m[3]+m[4], "page/"); pages.files[want].body == nil {
				t.Errorf("%s loads %s, which is not there", name, want)
			}
		}
		rec := ask(s, "GET", "/page/"+name, "", func(r *http.Request) { r.Header.Del("Authorization") })
		if body, err := io.ReadAll(rec.Body); err != nil || rec.Code != http.StatusOK || string(body) != text {
			t.Errorf("%s: %d %v", name, rec.Code, err)
		}
	}
}
