package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/security"
	"github.com/chromedp/chromedp"

	"switchboard/handoff"
	"switchboard/realtime/simulator"
	"switchboard/web/webtest"
)

// story is long enough to be cut short.
var story = strings.Repeat("And then the fox walked on through the long and quiet night. ", 20)

// clientsVoice is a voice model for clients that others wrote: it answers what [drive.cjs] says, and does what
// [scriptedVoice] does. heard are the words of the sounds that it hears, in order.
func clientsVoice(t *testing.T, heard ...string) modelSettings {
	t.Helper()
	words := make(chan string, len(heard))
	for _, w := range heard {
		words <- w
	}
	return runsVoice(t, simulator.Config{Hurry: 4, Words: words, Script: func(h simulator.Heard) []simulator.Move {
		moves := toolsAsTyped(h)
		for _, text := range h.Texts {
			switch word, _, _ := strings.Cut(text, " "); word {
			case "hello":
				text = "Hello to you too."
			case "a": // "a long story"
				text = story
			case "stop":
				text = "I stopped."
			case "instructions": // theirs alone: to say all of them takes ten seconds
				text = regexp.MustCompile(`Be brief and kind\.`).FindString(h.Instructions)
			case "[BACKEND]": // of codex: it is repeated
			default:
				continue
			}
			moves = append(moves, simulator.Say{Text: text})
		}
		return moves
	}})
}

// spokenInTurn is what a client says by voice that types everything else: a greeting, and a word into a story.
var spokenInTurn = []string{"hello by voice", "stop that"}

// A clientRun is one client at a service of its own.
type clientRun struct {
	*running
	secure string // the same behind TLS
}

// startForClient runs a service for one client.
func startForClient(t *testing.T, heard ...string) *clientRun {
	t.Helper()
	r := start(t, func(p *plan) { p.Hurry, p.Model = 3, clientsVoice(t, heard...) })
	r.up("bigpc")
	target, err := url.Parse(r.base)
	must(t, err)
	proxy := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(target) }})
	t.Cleanup(proxy.Close)
	return &clientRun{running: r, secure: proxy.URL}
}

// Findings say of each feature whether it worked: "yes", "no: why", or why the client does not have it.
type findings map[string]string

// noCallIsLeft holds that a client that hung up has left no call.
func (r *running) noCallIsLeft() {
	r.t.Helper()
	until(r.t, "the call to end", func() bool { return len(items[handoff.CallInfo](r, "/fleet/calls")) == 0 })
}

// inNode puts a client through everything with node.
func (r *clientRun) inNode(name string, settings map[string]any) (told findings) {
	r.t.Helper()
	settings["base"], settings["secure"], settings["key"] = r.base, r.secure, testKey
	about, err := json.Marshal(settings)
	must(r.t, err)
	run := exec.CommandContext(r.t.Context(), program(r.t, "node", "nodejs"), "testdata/clients/node.cjs", name, string(about))
	run.Env = append(os.Environ(), "NODE_PATH="+npmFile(r.t, ""))
	var complaints bytes.Buffer
	run.Stderr = &complaints
	out, err := run.Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil || json.Unmarshal([]byte(lines[len(lines)-1]), &told) != nil {
		r.t.Fatalf("%v: %s\n%s (make test installs what it imports into .tools)", err, out, complaints.String())
	}
	return told
}

// inChromium puts a client through everything in a page of another origin.
func (r *clientRun) inChromium(name string, settings map[string]any) (told findings) {
	r.t.Helper()
	t := r.t.(*testing.T)
	secret := r.made("/v1/realtime/client_secrets", `{}`)["value"]
	settings["base"], settings["secure"], settings["key"] = r.base, r.secure, secret
	about, err := json.Marshal(settings)
	must(t, err)
	p := openTab(t, startChromium(t, true), 800, 600)
	p.Do(webtest.Call(security.SetIgnoreCertificateErrors, security.SetIgnoreCertificateErrorsParams{Ignore: true}), chromedp.Navigate(pageElsewhere(t, bundled(t))))
	eval[bool](p, fmt.Sprintf(`put(%q, %s).then((told) => { window.told = JSON.stringify(told); }, (e) => { window.told = String(e); }), true`, name, about))
	for end := time.Now().Add(3 * patience); !eval[bool](p, `!!window.told`); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the client did not come to an end")
		}
	}
	if err := json.Unmarshal([]byte(eval[string](p, `told`)), &told); err != nil {
		t.Fatal(eval[string](p, `told`))
	}
	if settings["transport"] == "websocket" {
		return told
	}
	if sound := eval[string](p, `sound`); sound != "audio/opus audio/G722" {
		t.Errorf("sound went as %s", sound)
	}
	return told
}

// pageElsewhere is a page of another origin with a script, which a tab waits for.
func pageElsewhere(t *testing.T, script []byte) (url string) {
	t.Helper()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/script.js" {
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = w.Write(script)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(`<!doctype html><title>elsewhere</title><script src="/script.js"></script>`))
	}))
	t.Cleanup(page.Close)
	return page.URL
}

// bundle bundles the clients that run in a browser, once.
var bundle = sync.OnceValues(func() ([]byte, error) {
	modules, err := filepath.Abs("../../.tools/node_modules")
	if err != nil {
		return nil, err
	}
	run := exec.Command(filepath.Join(modules, ".bin/esbuild"), "testdata/clients/browser.cjs", "--bundle", "--format=iife",
		"--platform=browser", "--log-level=error")
	run.Env = append(os.Environ(), "NODE_PATH="+modules)
	return run.Output()
})

// bundled is the text of the clients that run in a browser.
func bundled(t *testing.T) []byte {
	t.Helper()
	text, err := bundle()
	if err != nil {
		t.Fatalf("esbuild: %v (make test installs it into .tools)", err)
	}
	return text
}

// codexSpeaks puts codex through everything as a voice client, with what else its client is told.
func (r *clientRun) codexSpeaks(settings map[string]any) findings {
	r.t.Helper()
	provider := newProvider(r.t)
	provider.script = func(s *providerStream, _ []providerItem) bool { s.say("It rains in Oslo.", 0); return true }
	work, home := r.t.TempDir(), codexHome(r.t, provider, fmt.Sprintf("experimental_realtime_ws_base_url = %q", r.base+"/v1"), `env_key = "SWITCHBOARD_KEY"`)
	env := map[string]string{"CODEX_HOME": home, "PATH": os.Getenv("PATH"), "HOME": home, "SWITCHBOARD_KEY": testKey}
	settings["program"], settings["cwd"], settings["env"] = codexProgram(r.t), work, env
	return r.inNode("codex", settings)
}

// spokenToCodex is what is said to codex, which is spoken to only.
var spokenToCodex = []string{
	"instructions", "hello", `background_agent {"prompt":"the weather in Oslo"}`, "list_servers {}", "a long story", "stop that",
	`codex {"server":"bigpc","prompt":"run the tests"}`, "hello again",
}
