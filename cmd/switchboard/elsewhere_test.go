package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/gorilla/websocket"

	"switchboard/handoff"
)

// A client secret outlives a restart, in both stores, and begins calls with its session until then and after.
func TestClientSecretOutlivesARestart(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(t *testing.T, store string) {
		dir := t.TempDir()
		begin := func() *running {
			return start(t, func(p *plan) { p.StateDir, p.Redis = dir, newSecret(store) })
		}
		r := begin()
		order := `{"session":{"type":"realtime","instructions":"Speak like a pirate."}}`
		secret := fmt.Sprint(r.made("/v1/realtime/client_secrets", order)["value"])
		for range 2 {
			dialer := websocket.Dialer{Subprotocols: []string{"realtime", "openai-insecure-api-key." + secret}}
			c, resp, err := dialer.DialContext(t.Context(), r.socket(), http.Header{"Origin": {"https://app.example"}})
			if err != nil {
				t.Fatalf("%v, %v", err, resp)
			}
			for bound := false; !bound; {
				var event struct {
					Type    string
					Session struct{ Instructions string }
				}
				must(t, c.ReadJSON(&event))
				if bound = event.Type == "session.created"; bound && event.Session.Instructions != "Speak like a pirate." {
					t.Fatalf("begun with %q", event.Session.Instructions)
				}
			}
			_ = c.Close()
			r.stop()
			r = begin()
		}
	})
}

// node runs a module with node; what it imports is in .tools.
func node(t *testing.T, script string, args ...string) string {
	t.Helper()
	tools, err := filepath.Abs("../../.tools")
	must(t, err)
	run := exec.CommandContext(t.Context(), program(t, "node", "nodejs"), append([]string{"--input-type=module", "-e", script}, args...)...)
	run.Dir = tools // modules are looked for here
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s (make test installs what it imports into .tools)", err, out)
	}
	return strings.TrimSpace(string(out))
}

// A backend makes a secret with OpenAI's own library, and learns what is wrong with an order in its words.
const makeSecret = `
import OpenAI from "openai";
const client = new OpenAI({ apiKey: process.argv[2], baseURL: process.argv[1] + "/v1", maxRetries: 0 });
const session = { type: "realtime", instructions: "Be brief." };
const made = await client.realtime.clientSecrets.create({ expires_after: { anchor: "created_at", seconds: 120 }, session });
const refused = await client.realtime.clientSecrets.create({ expires_after: { anchor: "created_at", seconds: 5 } }).catch((e) => e);
const stranger = await new OpenAI({ apiKey: "wrong", baseURL: process.argv[1] + "/v1", maxRetries: 0 }).realtime.clientSecrets.create({}).catch((e) => e);
console.log(JSON.stringify({ made, refused: [refused.constructor.name, refused.status, refused.param, refused.type], stranger: [stranger.constructor.name, stranger.status] }));
`

// pageElsewhere is a page of another origin with a script, which a tab waits for.
func pageElsewhere(t *testing.T, script string) (url string) {
	t.Helper()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/script.js" {
			http.ServeFile(w, req, script)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(`<!doctype html><title>elsewhere</title><script src="/script.js"></script>`))
	}))
	t.Cleanup(page.Close)
	return page.URL
}

// A page elsewhere talks with agents-realtime over both transports, with nothing but the secret that its backend
// made with the openai package.
func TestStockClientsElsewhere(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	said := node(t, makeSecret, r.base, testKey)
	var backend struct {
		Made struct {
			Value     string
			ExpiresAt int64 `json:"expires_at"`
			Session   struct{ Type string }
		}
		Refused, Stranger []any
	}
	if err := json.Unmarshal([]byte(said), &backend); err != nil || !strings.HasPrefix(backend.Made.Value, "ek_") || backend.Made.Session.Type != "realtime" || backend.Made.ExpiresAt == 0 {
		t.Fatalf("made %s, %v", said, err)
	}
	if got := fmt.Sprint(backend.Refused, backend.Stranger); got != "[BadRequestError 400 expires_after.seconds invalid_request_error] [AuthenticationError 401]" {
		t.Errorf("refused %s", got)
	}
	p := openTab(t, startChromium(t, true), 800, 600)
	p.Do(chromedp.Navigate(pageElsewhere(t, "../../.tools/node_modules/@openai/agents-realtime/dist/bundle/openai-realtime-agents.umd.js")))
	for transport, url := range map[string]string{"webrtc": r.base + "/v1/realtime/calls", "websocket": r.socket()} {
		settings, err := json.Marshal(map[string]string{"transport": transport, "url": url, "key": backend.Made.Value})
		must(t, err)
		eval[bool](p, `(async ({ transport, url, key }) => {
  const { RealtimeAgent, RealtimeSession } = OpenAIAgentsRealtime;
  const session = new RealtimeSession(new RealtimeAgent({ name: "elsewhere", instructions: "Be brief." }), { transport, model: "gpt-realtime-2.1" });
  window.went = { session, errors: [] };
  session.on("error", (e) => went.errors.push(JSON.stringify(e)));
  await session.connect({ apiKey: key, url });
  session.sendMessage("Which machines are there?");
  return true;
})(`+string(settings)+`)`)
		p.Until(`went.errors.length || JSON.stringify(went.session.history).includes("bigpc")`)
		if errors := eval[[]string](p, `went.errors`); len(errors) > 0 {
			t.Errorf("errors over %s: %q", transport, errors)
		}
		eval[bool](p, `(went.session.close(), true)`)
	}
	if code := eval[string](p, `fetch("`+r.base+`/fleet/servers", { headers: { authorization: "Bearer `+testKey+`" } }).then((a) => "answered", () => "refused")`); code != "refused" {
		t.Errorf("the fleet was %s elsewhere", code)
	}
	status := eval[string](p, `fetch("`+r.base+`/v1/realtime/calls", { method: "POST", headers: { authorization: "Bearer wrong" }, body: "v=0" }).then((a) => a.json()).then((a) => a.error.code)`)
	if status != string(handoff.CodeUnauthorized) {
		t.Errorf("a wrong key elsewhere: %s", status)
	}
}
