package main

import (
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestChromiumLetsAProgramIn: on the page of a program's request, a person logs in, sees which program it is and what
// it may do, cannot press by accident, and allows it; the settings list it and disconnect it.
func TestChromiumLetsAProgramIn(t *testing.T) {
	t.Parallel()
	told := make(chan url.Values, 1)
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/back" {
			if r.Header.Get("Referer") != "" {
				t.Errorf("it is told where from: %s", r.Header.Get("Referer"))
			}
			told <- r.URL.Query()
			_, _ = io.WriteString(w, "you may close this") // a page, so that the way there has an end
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(far.Close)
	r := letsIn(t, far.URL+"/back", nil)
	r.up("bigpc", "laptop")
	verifier := strings.Repeat("v", 50)
	sum := sha256.Sum256([]byte(verifier))
	request := func(pairs ...string) string {
		q := url.Values{"response_type": {"code"}, "client_id": {programID}, "redirect_uri": {programBack}, "state": {"s1"},
			"resource": {r.base + "/mcp"}, "code_challenge_method": {"S256"}, "code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}}
		for i := 0; i < len(pairs); i += 2 {
			q.Set(pairs[i], pairs[i+1])
		}
		return r.base + "/oauth/authorize?" + q.Encode()
	}
	resp, err := http.Get(request())
	must(t, err)
	_ = resp.Body.Close()
	if policy := resp.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "frame-ancestors 'none'") {
		t.Errorf("another page may show it: %s", policy)
	}
	p := openTab(t, startChromium(t, true), 1000, 760)
	p.Do(chromedp.Navigate(request()))
	p.Until(`document.querySelector("#login:not([hidden])")`)
	p.EnterKey(testKey)
	p.Until(`document.querySelector("#consent h1")?.textContent === "Let “Some chat” use your machines?"`)
	for _, text := range []string{"app.example", "In your name, owner, it may:", "give work to the agents on all your machines", "read your sessions there", "stop work"} {
		p.Shows(text)
	}
	if pressed := eval[bool](p, `[...document.querySelectorAll("#consent button")].find((b) => b.textContent === "Allow").disabled`); !pressed {
		t.Error("it can be allowed before anybody has read it")
	}
	const allow = `[...document.querySelectorAll("#consent button")].find((b) => b.textContent === "Allow")`
	p.Until(`!` + allow + `.disabled`)
	p.Picture("let-in")
	if bad := eval[string](p, `(() => { const box = document.querySelector("#consent").getBoundingClientRect(); return box.left < 0 || box.right > innerWidth || document.documentElement.scrollWidth > innerWidth ? "too wide" : ""; })()`); bad != "" {
		t.Error(bad)
	}
	// What is wrong goes nowhere by itself.
	p.Do(chromedp.Navigate(request("redirect_uri", "https://evil.example/back")))
	p.Until(`document.querySelector("#consent h1")?.textContent === "This program cannot be let in"`)
	p.Do(chromedp.Navigate(request("code_challenge_method", "plain")))
	p.Until(`document.querySelector("#consent h1")?.textContent === "“Some chat” cannot be let in"`)
	p.Shows("Back to app.example")
	// A program on this computer is told apart, and is told.
	p.Do(chromedp.Navigate(request("redirect_uri", far.URL+"/back")))
	p.Shows("a program on this computer")
	p.Until(`!` + allow + `.disabled`)
	p.Picture("let-in-here")
	p.Click("Allow")
	said := <-told
	p.Until(`location.href.startsWith("` + far.URL + `") && document.readyState === "complete"`)
	if said.Get("state") != "s1" || said.Get("iss") != r.base || said.Get("code") == "" {
		t.Errorf("it is told %v", said)
	}
	body := url.Values{"grant_type": {"authorization_code"}, "code": {said.Get("code")}, "client_id": {programID},
		"redirect_uri": {far.URL + "/back"}, "code_verifier": {verifier}, "resource": {r.base + "/mcp"}}
	if status, got := r.ask(http.MethodPost, "/oauth/token", body.Encode(), "Authorization", "", "Content-Type", "application/x-www-form-urlencoded"); status != http.StatusOK {
		t.Errorf("its tokens: %d %s", status, got)
	}
	p.Do(chromedp.Navigate(r.base + "/#settings"))
	p.Until(`document.querySelectorAll("#apps-list li").length === 1`)
	p.Shows("Some chat")
	p.Do(chromedp.ScrollIntoView(chromedp.CSS("#apps-list")))
	p.Picture("programs")
	eval[bool](p, `(document.querySelector("#apps-list button").click(), true)`)
	p.Until(`document.querySelector("#apps-list").closest("section").hidden`)
	if all := r.apps(); len(all) != 0 {
		t.Errorf("still let in: %v", all)
	}
}
