package web

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
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// patience bounds a wait for something that happens; it is never how long it should take.
const patience = 30 * time.Second

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
		chromedp.NoSandbox,
		chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("use-fake-device-for-media-stream", true),
		chromedp.Flag("use-fake-ui-for-media-stream", ui),
		chromedp.Flag("use-file-for-fake-audio-capture", silence(t)),
		chromedp.Flag("autoplay-policy", "no-user-gesture-required"),
		chromedp.Flag("allow-loopback-in-peer-connection", true),
		chromedp.Flag("disable-features", "WebRtcHideLocalIpsWithMdns"),
	))
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits for the browser's end
		cancel()
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("chromium does not start (install Debian's package chromium): %v", err)
	}
	return ctx
}

// A tab is one page in a browser of its own, with what it wrote to its console.
type tab struct {
	t    *testing.T
	ctx  context.Context
	mu   sync.Mutex
	said []string // Guarded by mu: warnings and errors of the console
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
	p.do(chromedp.EmulateViewport(width, height))
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

func (p *tab) console() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.said...)
}

// quiet holds the page to an empty console, but for the one answer that says that the key is missing,
// before a login.
func (p *tab) quiet() {
	p.t.Helper()
	for _, line := range p.console() {
		if !strings.Contains(line, "401") {
			p.t.Errorf("the console says %q", line)
		}
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

func (p *tab) open(url string) { p.t.Helper(); p.do(chromedp.Navigate(url)) }

// until waits for a JavaScript expression to be true. One that fails is not true yet: what it looks at may still come.
func (p *tab) until(expression string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	poll := "(() => { try { return !!(" + expression + "); } catch { return false; } })()"
	if _, err := chromedp.Run(ctx, chromedp.Poll[bool](poll, chromedp.WithPollingInterval(20*time.Millisecond))); err != nil {
		now, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string](`document.body.innerText`))
		p.t.Fatalf("never true: %s: %v\npage:\n%s", expression, err, now)
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

// press sends keys to whatever has the focus. A key goes down with its text: sent apart, the text of a key whose default
// was prevented would press what has the focus by then.
func (p *tab) press(keys ...string) {
	p.t.Helper()
	send := func(e input.DispatchKeyEventParams) {
		p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			_, err := cdp.Call(ctx, t, input.DispatchKeyEvent, e)
			return err
		}))
	}
	for _, r := range strings.Join(keys, "") {
		events := kb.Encode(r)
		down, up := *events[0], *events[len(events)-1]
		if len(events) == 3 {
			down.Text, down.UnmodifiedText = events[1].Text, events[1].UnmodifiedText
		}
		send(down)
		send(up)
	}
}

// tabTo moves the focus by keyboard to the control with this name.
func (p *tab) tabTo(name string) {
	p.t.Helper()
	for range 60 {
		p.press("\t")
		if eval[bool](p, fmt.Sprintf(`(() => { const e = document.activeElement; return (e.getAttribute("aria-label") || e.textContent).trim() === %q; })()`, name)) {
			return
		}
	}
	p.t.Fatalf("the keyboard does not reach %q", name)
}

// click presses the visible button with this name.
func (p *tab) click(name string) {
	p.t.Helper()
	p.hit(fmt.Sprintf(`[...document.querySelectorAll("button, summary")].find((b) => (b.getAttribute("aria-label") || b.textContent).trim() === %q && b.checkVisibility())`, name))
}

// hit presses what an expression finds, where it is seen, once it stands still and nothing lies over it.
func (p *tab) hit(found string) {
	p.t.Helper()
	p.until(`((e) => {
	  if (!e?.checkVisibility()) return false;
	  e.scrollIntoView({ block: "nearest", inline: "nearest" });
	  const { left, top, width, height } = e.getBoundingClientRect(), at = [left + width / 2, top + height / 2];
	  const still = String(window.hitAt) === String(at);
	  window.hitAt = at;
	  return still && e.contains(document.elementFromPoint(...at));
	})(` + found + `)`)
	at := eval[[]float64](p, `hitAt`)
	p.do(chromedp.MouseClickXY(at[0], at[1]))
}

// scheme chooses light or dark.
func (p *tab) scheme(name string) {
	p.t.Helper()
	params := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"}}}
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, params)
		return err
	}))
}

// shot takes a picture; with SWITCHBOARD_PICTURES set, it is kept there to be looked at.
func (p *tab) shot(name string) {
	p.t.Helper()
	picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil || len(picture) < 1000 {
		p.t.Fatalf("picture %s: %d bytes, %v", name, len(picture), err)
	}
	if dir := os.Getenv("SWITCHBOARD_PICTURES"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o600); err != nil {
			p.t.Fatal(err)
		}
	}
}

// size gives the window another size, and waits until the page is laid out for it.
func (p *tab) size(width, height int64) {
	p.t.Helper()
	p.do(chromedp.EmulateViewport(width, height))
	p.until(fmt.Sprintf("innerWidth === %d && innerHeight === %d", width, height))
	eval[bool](p, frames)
}

// frames waits until the page was drawn, with what its size or its state changed.
const frames = `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`

// allRead waits until the work and the questions of the first look are in the page's state: the machines may come before.
const allRead = `Promise.all([import("/page/store.js"), import("/page/state-work.js")]).then(async ([{ get }, { workStart }]) => {
  while (get().work.records === workStart.records) await new Promise((next) => setTimeout(next, 20));
  return true;
})`

// loggedIn opens the page, enters the owner's key and waits until it shows the fleet and the work.
func (p *tab) loggedIn(base string) {
	p.t.Helper()
	p.open(base)
	p.until(`document.querySelector("#login:not([hidden])")`)
	p.enter(ownerKey)
	p.until(`document.querySelector("#app:not([hidden]) .machine, #app:not([hidden]) #no-machines:not([hidden])")`)
	eval[bool](p, allRead)
	eval[bool](p, frames)
}

// enter puts a key into the login form.
func (p *tab) enter(key string) {
	p.t.Helper()
	p.do(chromedp.Focus(chromedp.ID("login-key")))
	p.press(key, "\r")
}
