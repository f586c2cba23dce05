// Package webtest runs Switchboard's page in a browser, for tests: one Chromium for all tests of a package, and in it a
// tab for each test. Storage, permissions and connections of a tab are its own.
//
// The package knows how the page's controls are named, where the login form and the state of the call are, and which
// controls cannot be pressed yet. It must not know what else the page shows: its tests check that.
package webtest

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// Patience bounds every wait. It is so long that only a failure takes so long, even on a busy machine.
const Patience = 3 * time.Minute

// Browsers has the browsers of one test binary: one where pages may use the microphone, one where they may not, and one
// with notifications. Each starts when a test first needs it. TestMain closes them. The zero value is ready to use.
//
// The first two are Chromium's headless shell, which has the same engine and no windows, so that a tab costs it a third
// of the CPU time. It has no notifications.
type Browsers struct {
	Flags map[string]any // Set once: more flags for Chromium

	allowed, refused, whole browser
}

// A browser is started once.
type browser struct {
	once sync.Once
	ctx  context.Context // Set by once; nil if it did not start
	end  func()          // Set by once; nil before the first use
	err  error           // Set by once
}

// Start returns the browser with a silent microphone (mic), or the one whose pages may not use a microphone.
func (b *Browsers) Start(t *testing.T, mic bool) context.Context {
	t.Helper()
	one := &b.refused
	if mic {
		one = &b.allowed
	}
	return one.get(t, "chromium-headless-shell", mic, b.Flags)
}

// StartWhole returns the browser with notifications, and with a silent microphone.
func (b *Browsers) StartWhole(t *testing.T) context.Context {
	t.Helper()
	return b.whole.get(t, "chromium", true, b.Flags)
}

// get starts the browser with its first use.
func (b *browser) get(t *testing.T, program string, mic bool, flags map[string]any) context.Context {
	t.Helper()
	b.once.Do(func() { b.start(program, mic, flags) })
	if b.err != nil {
		t.Fatalf("chromium does not start (install Debian's package %s): %v", program, b.err)
	}
	if err := context.Cause(b.ctx); err != nil {
		t.Fatalf("chromium has ended: %v", err)
	}
	return b.ctx
}

// Close ends the browsers, and waits until they have ended.
func (b *Browsers) Close() {
	for _, one := range []*browser{&b.allowed, &b.refused, &b.whole} {
		if one.end != nil {
			one.end()
		}
	}
}

func (b *browser) start(program string, mic bool, flags map[string]any) {
	dir, err := os.MkdirTemp("", "webtest")
	if err != nil {
		b.err = err
		return
	}
	ui := any(true)
	if !mic {
		ui = "deny"
	}
	silent := filepath.Join(dir, "silence.wav") // Chromium's fake microphone beeps
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(program),
		chromedp.NoSandbox,
		chromedp.UserDataDir(filepath.Join(dir, "profile")),
		chromedp.Flag("use-fake-device-for-media-stream", true),
		chromedp.Flag("use-fake-ui-for-media-stream", ui),
		chromedp.Flag("use-file-for-fake-audio-capture", silent),
		chromedp.Flag("autoplay-policy", "no-user-gesture-required"),
		chromedp.Flag("force-prefers-reduced-motion", true), // a lamp that breathes takes much CPU
		chromedp.Flag("allow-loopback-in-peer-connection", true),
	}
	if runtime.GOOS == "linux" && os.Geteuid() == 0 {
		options = append(options, chromedp.ModifyCmdFunc(unhurried))
	}
	for name, value := range flags {
		options = append(options, chromedp.Flag(name, value))
	}
	ctx, cancel := chromedp.NewContext(context.Background(), chromedp.WithAllocatorOptions(options...))
	b.ctx = ctx
	b.end = func() {
		_ = chromedp.Cancel(ctx) // waits for the browser's end
		cancel()
		_ = os.RemoveAll(dir)
	}
	if b.err = os.WriteFile(silent, silence(), 0o600); b.err == nil {
		b.err = chromedp.Do(ctx)
	}
}

// unhurried drops the capability to raise its priority from a browser that root runs; for other users it has none. With
// it, the browser's sound threads may take all CPU time of a busy machine.
func unhurried(cmd *exec.Cmd) {
	without := []string{"setpriv", "--pdeathsig=KILL", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice", cmd.Path}
	cmd.Args = append(without, cmd.Args[1:]...)
	if cmd.Path, cmd.Err = exec.LookPath("setpriv"); cmd.Err != nil {
		cmd.Err = fmt.Errorf("setpriv is missing: install the Debian package util-linux: %w", cmd.Err)
	}
}

// silence returns a WAV file with a second of silence.
func silence() []byte {
	const rate, bytes = 48000, 2 * 48000
	head := []byte("RIFF")
	head = binary.LittleEndian.AppendUint32(head, 36+bytes)
	head = append(head, "WAVEfmt "...)
	head = binary.LittleEndian.AppendUint32(head, 16)
	head = binary.LittleEndian.AppendUint16(head, 1) // PCM
	head = binary.LittleEndian.AppendUint16(head, 1) // mono
	head = binary.LittleEndian.AppendUint32(head, rate)
	head = binary.LittleEndian.AppendUint32(head, 2*rate)
	head = binary.LittleEndian.AppendUint16(head, 2)
	head = binary.LittleEndian.AppendUint16(head, 16)
	head = append(head, "data"...)
	head = binary.LittleEndian.AppendUint32(head, bytes)
	return append(head, make([]byte, bytes)...)
}
