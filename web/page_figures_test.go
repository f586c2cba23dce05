package web

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"

	"switchboard/handoff"
	"switchboard/web/webtest"
)

// busy gives the seconds of CPU that a tab's thread has worked: in all, for scripts, and for layout and style.
func (p *tab) busy() (all, script, layout float64) {
	p.T.Helper()
	p.Do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		got, err := cdp.Call(ctx, t, performance.GetMetrics, cdp.Empty{})
		if err != nil {
			return err
		}
		for _, m := range got.Metrics {
			switch m.Name {
			case "TaskDuration":
				all = m.Value
			case "ScriptDuration":
				script = m.Value
			case "LayoutDuration", "RecalcStyleDuration":
				layout += m.Value
			}
		}
		return nil
	}))
	return all, script, layout
}

// shownAt notes when the page was first shown with its work and its machines, in ms after it was asked for.
const shownAt = `new MutationObserver((_, o) => {
  if (!document.querySelector("#app:not([hidden]) .machine") || !document.querySelector("#cards .card")) return;
  o.disconnect();
  requestAnimationFrame(() => { window.shownAt = performance.now(); });
}).observe(document, { subtree: true, childList: true, attributes: true, attributeFilter: ["hidden"] });
window.stalls = [];
new PerformanceObserver((l) => window.stalls.push(...l.getEntries().map((e) => Math.round(e.duration)))).observe({ type: "longtask", buffered: true })`

// TestPageFigures prints what a day of 521 pieces of work costs the browser: the CPU of a reload, the stalls when 100
// more arrive, and when the page can be used over a slow line. It holds only that all of it is shown: how long that
// takes is the machine's.
func TestPageFigures(t *testing.T) {
	t.Parallel()
	w := newWorld()
	busyDay(w, 21, 500)
	base, _ := serveBundled(t, w)
	feed := w.feed("owner")
	p := openTab(t, startChromium(t, true), 1440, 900)
	p.Do(
		atFirst(shownAt),
		webtest.Call(performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks}),
		webtest.Call(network.Enable, network.EnableParams{}),
	)
	p.open(base)
	p.EnterKey(ownerKey)
	const all = `document.querySelectorAll("#cards .card").length === 21 && document.querySelectorAll("#finished .card").length > 20`
	p.Until(all)
	for i := range 3 {
		before, script, layout := p.busy()
		p.open(fmt.Sprint(base, "/?reload=", i))
		p.Until(all)
		eval[bool](p, frames)
		after, script2, layout2 := p.busy()
		if after < before { // counted anew with the page
			before, script, layout = 0, 0, 0
		}
		t.Logf("a reload with 521 pieces: %.2f s of CPU, %.2f s scripts, %.2f s layout; shown after %.0f ms; stalls of %v ms",
			after-before, script2-script, layout2-layout, eval[float64](p, `shownAt`), eval[[]int](p, `stalls`))
	}

	eval[bool](p, `(stalls.length = 0, true)`)
	before, _, _ := p.busy()
	for i := range 100 {
		more := w.records[i%21]
		more.ID, more.Prompt, more.CreatedAt, more.Items = fmt.Sprint("new", i), fmt.Sprint("One more, ", i), time.Now(), nil
		feed.Publish(handoff.PageEvent{Kind: handoff.PageHandoff, Handoff: more.ID, Record: &more})
	}
	p.Until(`document.querySelectorAll("#cards .card").length === 121`)
	eval[bool](p, frames)
	after, _, _ := p.busy()
	t.Logf("100 more arrive: %.2f s of CPU, stalls of %v ms", after-before, eval[[]int](p, `stalls`))

	slow := &network.Conditions{Latency: 150, DownloadThroughput: 1.6e6 / 8, UploadThroughput: 750e3 / 8}
	p.Do(
		webtest.Call(
			network.EmulateNetworkConditionsByRule,
			network.EmulateNetworkConditionsByRuleParams{MatchedNetworkConditions: []*network.Conditions{slow}},
		),
	)
	for i := range 2 {
		p.open(fmt.Sprint(base, "/?slow=", i))
		p.Until(all + ` && window.shownAt`)
		t.Logf("over a line of 1.6 Mbit/s and 150 ms, with the page kept: shown after %.0f ms", eval[float64](p, `shownAt`))
	}
	p.quiet()
}
