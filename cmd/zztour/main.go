package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/chromedp/chromedp"
)

func ev(ctx context.Context, e string) string {
	v, err := chromedp.Run(ctx, chromedp.Evaluate[string](e, chromedp.EvalAwaitPromise))
	if err != nil {
		return "ERR " + err.Error()
	}
	return v
}

var began = time.Now()

func say(f string, a ...any) { fmt.Printf("%6.1f "+f+"\n", append([]any{time.Since(began).Seconds()}, a...)...) }

func shot(ctx context.Context, name string) {
	b, _ := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	os.WriteFile("/tmp/tour/"+name+".png", b, 0o600)
}

const state = `(() => [document.querySelector("#status-text").textContent, [...document.querySelectorAll(".machine")].map((m) => m.querySelector(".plug-name").textContent + "=" + m.querySelector(".pill").textContent).join(","), [...document.querySelectorAll(".card")].map((c) => c.querySelector(".plug-name").textContent + ":" + c.querySelector(".card-prompt").textContent + "=" + c.querySelector(".pill").textContent + "(" + c.querySelector(".card-meta").textContent.split(" · ")[0] + ")").join(",")].join(" | "))()`
const lines = `[...document.querySelectorAll(".line")].map((l) => l.innerText.replace(/\n/g, " > ") + (l.classList.contains("partial") ? " …" : "")).join("\n")`

func watch(ctx context.Context, until func(string) bool, max time.Duration) {
	last := ""
	for end := time.Now().Add(max); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		s := ev(ctx, state)
		if s != last {
			say("   %s", s)
			last = s
		}
		if until(s) {
			return
		}
	}
}

func main() {
	ctx, cancel := chromedp.NewContext(context.Background(), chromedp.WithAllocatorOptions(chromedp.NoSandbox, chromedp.Flag("use-fake-device-for-media-stream", true), chromedp.Flag("use-fake-ui-for-media-stream", true),
		chromedp.Flag("use-file-for-fake-audio-capture", "/tmp/tour/silence.wav"), chromedp.Flag("autoplay-policy", "no-user-gesture-required"), chromedp.Flag("allow-loopback-in-peer-connection", true)))
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1280, 900), chromedp.Navigate(os.Args[1])); err != nil {
		panic(err)
	}
	time.Sleep(2 * time.Second)
	ev(ctx, `(document.querySelector("#start").click(), "")`)
	calm := 0
	idle := func(s string) bool {
		ok := ev(ctx, `String([...document.querySelectorAll(".card:not(.over)")].length === 0 && document.querySelector("#status-text").textContent === "Listening" && document.querySelector("#status").dataset.tone === "live")`) == "true"
		if ok { calm++ } else { calm = 0 }
		return calm > 25
	}
	watch(ctx, idle, 20*time.Second)
	for i, c := range []string{"Which machines do I have?", "What was I working on?", "Continue the auth session on bigpc and run the tests", "Fix it", "On laptop, write the release notes", "Push it from bigpc", "Ask attic to check the backups", "Run the benchmarks on bigpc"} {
		say("CHIP %s", c)
		ev(ctx, fmt.Sprintf(`([...document.querySelectorAll(".chip")].find((e) => e.querySelector(".chip-text").textContent === %q).click(), "")`, c))
		calm = 0
		switch c {
		case "Push it from bigpc":
			watch(ctx, func(s string) bool { return ev(ctx, `String(!!document.querySelector(".question:not(.settling)"))`) == "true" }, 30*time.Second)
			time.Sleep(4 * time.Second)
			shot(ctx, "q")
			say("%s", ev(ctx, lines))
			ev(ctx, `(document.querySelector(".question .primary").click(), "")`)
			watch(ctx, idle, 40*time.Second)
		case "Run the benchmarks on bigpc":
			time.Sleep(5 * time.Second)
			shot(ctx, "bench")
			ev(ctx, `(document.querySelector("#hangup").click(), "")`)
			watch(ctx, func(s string) bool { return ev(ctx, `String([...document.querySelectorAll(".card:not(.over)")].length === 0)`) == "true" }, 40*time.Second)
			time.Sleep(time.Second)
			shot(ctx, "away")
			ev(ctx, `(document.querySelector("#start").click(), "")`)
			watch(ctx, idle, 30*time.Second)
		default:
			watch(ctx, idle, 60*time.Second)
		}
		shot(ctx, fmt.Sprint("chip", i+1))
	}
	say("LINES\n%s", ev(ctx, lines))
	say("CARDS\n%s", ev(ctx, `[...document.querySelectorAll(".card")].map((l) => l.innerText).join("\n=====\n")`))
}
