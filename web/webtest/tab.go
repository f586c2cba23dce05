package webtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A Tab is a page in a browser context of its own, with the lines of its console. Its methods fail the test if what
// they wait for does not happen within [Patience].
type Tab struct {
	Ctx context.Context // Set once: for calls of chromedp
	T   *testing.T      // the test of the tab

	mu   sync.Mutex
	said []string // Guarded by mu: warnings, errors and exceptions of the console
}

// Open opens an empty tab with the focus. The scripts run in each page before its own. The tab is closed when the test
// ends.
func Open(t *testing.T, browser context.Context, width, height int64, scripts ...string) *Tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	p := &Tab{T: t, Ctx: ctx}
	console := chromedp.Console(ctx)
	var reading sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		reading.Wait()
		if t.Failed() {
			t.Logf("console: %q", p.Console())
		}
	})
	focus := emulation.SetFocusEmulationEnabledParams{Enabled: true}
	p.Do(chromedp.EmulateViewport(width, height), Call(emulation.SetFocusEmulationEnabled, focus))
	for _, script := range scripts {
		p.Do(AtFirst(script))
	}
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

// AtFirst returns an action that makes a script run before those of each page that a tab opens from now on.
func AtFirst(script string) chromedp.Action[chromedp.Void] {
	return Call(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
}

// Attach returns a tab for an existing context, such as that of a worker. Its console is not read.
func Attach(ctx context.Context, t *testing.T) *Tab { return &Tab{T: t, Ctx: ctx} }

// Call returns an action that sends a command to the browser, and ignores its result.
func Call[P, R any](command cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, command, params)
		return err
	})
}

// Console returns the warnings, errors and exceptions of the console so far.
func (p *Tab) Console() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.said...)
}

// Do runs actions one after another.
func (p *Tab) Do(steps ...chromedp.Action[chromedp.Void]) {
	p.T.Helper()
	ctx, cancel := context.WithTimeout(p.Ctx, Patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.T.Fatal(err)
	}
}

// Eval returns the value of a JavaScript expression; a promise is awaited.
func Eval[T any](p *Tab, expression string) T {
	p.T.Helper()
	ctx, cancel := context.WithTimeout(p.Ctx, Patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.T.Fatalf("%s: %v", expression, err)
	}
	return v
}

// looks evaluates an expression repeatedly in the page, for a second, until it is true; a promise is awaited. The
// pauses grow, because each evaluation may be expensive for the page.
const looks = `(async () => {
  for (const begun = performance.now(); ;) {
    try { if (await (%s)) return true; } catch {}
    const waited = performance.now() - begun;
    if (waited > 1000) return false;
    await new Promise((next) => setTimeout(next, 20 + waited / 10));
  }
})()`

// Until waits until an expression is true. An expression that throws is not true yet. An evaluation that ends because
// the page was replaced is repeated.
func (p *Tab) Until(expression string) {
	p.T.Helper()
	ctx, cancel := context.WithTimeout(p.Ctx, Patience)
	defer cancel()
	for {
		found, err := chromedp.Run(ctx, chromedp.Evaluate[bool](fmt.Sprintf(looks, expression), chromedp.EvalAwaitPromise))
		if found {
			return
		}
		if _, wrong := errors.AsType[*chromedp.ExceptionError](err); wrong || p.Ctx.Err() != nil {
			p.T.Fatalf("%s: %v", expression, err)
		}
		if ctx.Err() != nil {
			p.T.Fatalf("never true: %s (%v)\npage:\n%s", expression, err, Eval[string](p, `document.body.innerText`))
		}
		if err != nil {
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// Shows waits until the page shows a text.
func (p *Tab) Shows(text string) {
	p.T.Helper()
	p.Until(fmt.Sprintf(`document.body.innerText.replace(/\s+/g, " ").includes(%q)`, text))
}

// Press sends keys to the element with the focus. The text of a key is sent with its keydown: sent separately, it would
// reach the element that has the focus by then, even if the page has prevented the default of the keydown.
func (p *Tab) Press(keys ...string) {
	p.T.Helper()
	for _, r := range strings.Join(keys, "") {
		events := kb.Encode(r)
		down, up := *events[0], *events[len(events)-1]
		if len(events) == 3 {
			down.Text, down.UnmodifiedText = events[1].Text, events[1].UnmodifiedText
		}
		p.Do(Call(input.DispatchKeyEvent, down), Call(input.DispatchKeyEvent, up))
	}
}

// Paste inserts a text at once into the element with the focus. Press would take some 25 ms of CPU time for each
// letter.
func (p *Tab) Paste(text string) {
	p.T.Helper()
	p.Do(Call(input.InsertText, input.InsertTextParams{Text: text}))
}

// Scheme sets the colour scheme, light or dark, and turns off motion.
func (p *Tab) Scheme(name string) {
	p.T.Helper()
	features := []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}
	p.Do(Call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}))
}

// picturesEnv is the variable with the directory for pictures. If it is not set, no pictures are taken.
const picturesEnv = "SWITCHBOARD_PICTURES"

// Picture saves a screenshot of the page, for people; see [picturesEnv].
func (p *Tab) Picture(name string) {
	p.T.Helper()
	dir := os.Getenv(picturesEnv)
	if dir == "" {
		return
	}
	picture, err := chromedp.Run(p.Ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o600)
	}
	if err != nil {
		p.T.Fatalf("picture %s: %v", name, err)
	}
}

// Tree returns the accessibility tree as lines "role: name".
func (p *Tab) Tree() []string {
	p.T.Helper()
	var lines []string
	p.Do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		got, err := cdp.Call(ctx, t, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
		if err != nil {
			return err
		}
		for _, n := range got.Nodes {
			if !n.Ignored && n.Role != nil {
				lines = append(lines, spelled(n.Role)+": "+spelled(n.Name))
			}
		}
		return nil
	}))
	return lines
}

// spelled returns a value of the accessibility tree as text.
func spelled(v *accessibility.Value) string {
	var s string
	if v == nil || len(v.Value) == 0 {
		return ""
	}
	if json.Unmarshal(v.Value, &s) != nil {
		return string(v.Value)
	}
	return s
}
