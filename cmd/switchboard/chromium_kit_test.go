package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// picturesIn names the directory that pictures of the page are kept in, to be looked at. Unset: none are.
const picturesIn = "SWITCHBOARD_PICTURES"

// silence writes a second of silence: Chromium's own microphone beeps.
func silence(t *testing.T) string {
	t.Helper()
	const rate, bytes = 48000, 2 * 48000
	head := []byte("RIFF")
	head = binary.LittleEndian.AppendUint32(head, 36+bytes)
	head = append(head, "WAVEfmt "...)
	for _, v := range []any{uint32(16), uint16(1), uint16(1), uint32(rate), uint32(2 * rate), uint16(2), uint16(16)} {
		head, _ = binary.Append(head, binary.LittleEndian, v)
	}
	head = append(head, "data"...)
	head = binary.LittleEndian.AppendUint32(head, bytes)
	name := filepath.Join(t.TempDir(), "silence.wav")
	if err := os.WriteFile(name, append(head, make([]byte, bytes)...), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// startChromium starts a browser whose microphone is silent and allowed, or refused.
func startChromium(t *testing.T, mic bool) context.Context {
	t.Helper()
	ui := any(true)
	if !mic {
		ui = "deny"
	}
	ctx, cancel := chromedp.NewContext(t.Context(), chromedp.WithAllocatorOptions(
		chromedp.ExecPath(program(t, "chromium", "chromium")),
		chromedp.NoSandbox,
		chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("use-fake-device-for-media-stream", true),
		chromedp.Flag("use-fake-ui-for-media-stream", ui),
		chromedp.Flag("use-file-for-fake-audio-capture", silence(t)),
		chromedp.Flag("autoplay-policy", "no-user-gesture-required"),
		chromedp.Flag("allow-loopback-in-peer-connection", true),
	))
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits for the browser's end
		cancel()
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("chromium does not start: %v", err)
	}
	return ctx
}

// watcher runs in the page before its own code: it keeps what a test looks at, and lets it make a sound in
// front of the microphone. It changes nothing of what the page does.
const watcher = `(() => {
  const seen = window.seen = { peers: [], violations: [], micOn: () => seen.mic?.getAudioTracks()[0].enabled, makeSound: () => {} };
  addEventListener("securitypolicyviolation", (e) => seen.violations.push(e.violatedDirective + " " + e.blockedURI));
  window.RTCPeerConnection = class extends RTCPeerConnection { constructor(...a) { super(...a); seen.peers.push(this); } };
  if (!navigator.mediaDevices) return; // the empty page before ours
  const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
  navigator.mediaDevices.getUserMedia = async (wish) => {
    const stream = await open(wish);
    const room = new AudioContext(), heard = room.createMediaStreamDestination(), tone = room.createOscillator(), level = room.createGain();
    tone.frequency.value = 300;
    level.gain.value = 0;
    room.createMediaStreamSource(stream).connect(heard);
    tone.connect(level).connect(heard);
    tone.start();
    seen.makeSound = (on) => { level.gain.value = on ? 0.5 : 0; };
    return (seen.mic = heard.stream);
  };
  seen.connected = () => seen.peers.at(-1)?.connectionState === "connected";
  seen.packets = async () => {
    const count = { sent: 0, received: 0, lost: 0 };
    (await seen.peers.at(-1).getStats()).forEach((s) => {
      if (s.type === "outbound-rtp") count.sent += s.packetsSent;
      if (s.type === "inbound-rtp") { count.received += s.packetsReceived; count.lost += s.packetsLost; }
    });
    return count;
  };
  seen.streamed = {}; // by work: how much of its output the page showed at a time
  const look = () => {
    for (const card of document.querySelectorAll(".card:not(.over)")) {
      const shown = (seen.streamed[card.getAttribute("aria-labelledby")] ??= []), size = card.querySelector(".output")?.textContent.length ?? 0;
      if (size && shown.at(-1) !== size) shown.push(size);
    }
  };
  addEventListener("DOMContentLoaded", () => new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true }));
})()`

// A tab is the page in a browser of its own, with what it wrote to its console.
type tab struct {
	t    *testing.T
	ctx  context.Context
	mu   sync.Mutex
	said []string // Guarded by mu: warnings, errors and exceptions of the console
}

// openTab opens an empty tab.
func openTab(t *testing.T, browser context.Context, width, height int64) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	p := &tab{t: t, ctx: ctx}
	console := chromedp.Console(ctx)
	var reading sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		reading.Wait()
		if t.Failed() {
			t.Logf("console: %q", p.console())
		}
	})
	p.do(chromedp.EmulateViewport(width, height), inPage(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watcher}))
	reading.Go(func() {
		for m, err := range console {
			if err != nil {
				return
			}
			if m.Type == chromedp.ConsoleError || m.Type == chromedp.ConsoleWarning || m.IsException() {
				p.mu.Lock()
				p.said = append(p.said, m.String())
				p.mu.Unlock()
			}
		}
	})
	return p
}

// inPage makes an action of a command of the browser whose answer nobody needs.
func inPage[P, R any](command cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, command, params)
		return err
	})
}

func (p *tab) console() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.said...)
}

// quiet holds the page to an empty console and to its content security policy. What is lost on purpose may
// be told: an answer that says that the key is missing, and a service that is away.
func (p *tab) quiet(allowed ...string) {
	p.t.Helper()
	for _, line := range p.console() {
		fine := false
		for _, words := range allowed {
			fine = fine || strings.Contains(line, words)
		}
		if !fine {
			p.t.Errorf("the console says %q", line)
		}
	}
	if broken := eval[[]string](p, `seen.violations`); len(broken) > 0 {
		p.t.Errorf("against the content security policy: %q", broken)
	}
}

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

// until waits for a JavaScript expression to be true. One that fails is not true yet: what it looks at may still come.
func (p *tab) until(expression string) {
	p.t.Helper()
	for end := time.Now().Add(patience); !eval[bool](p, "(async () => { try { return !!("+expression+"); } catch { return false; } })()"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("never true: %s\npage:\n%s", expression, eval[string](p, `document.body.innerText`))
		}
	}
}

// eval gives the value of an expression; a promise is awaited.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// shows waits until the page shows a text.
func (p *tab) shows(text string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`document.body.innerText.replace(/\s+/g, " ").includes(%q)`, text))
}

// scheme chooses light or dark.
func (p *tab) scheme(name string) {
	p.t.Helper()
	p.do(inPage(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"}}}))
}

// pictures keeps what the page looks like now, light and dark, if somebody wants to look at it.
func (p *tab) pictures(name string) {
	p.t.Helper()
	dir := os.Getenv(picturesIn)
	if dir == "" {
		return
	}
	for _, scheme := range []string{"dark", "light"} {
		p.scheme(scheme)
		picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
		if err != nil {
			p.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+"-"+scheme+".png"), picture, 0o600); err != nil {
			p.t.Fatal(err)
		}
	}
}
