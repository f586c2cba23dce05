package rtctest

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// Patience bounds the wait for something that must happen; only a failing test waits so long.
const Patience = 3 * time.Minute

// Take waits for a value that must come, and returns it.
func Take[T any](t testing.TB, from <-chan T, what string) T {
	t.Helper()
	select {
	case v, ok := <-from:
		if !ok {
			t.Fatalf("the end came before %s", what)
		}
		return v
	case <-time.After(Patience):
		t.Fatalf("no %s", what)
		panic("unreachable")
	}
}

// Gone waits for a channel to be closed, and drops values that come before.
func Gone[T any](t testing.TB, c <-chan T, what string) {
	t.Helper()
	timeout := time.After(Patience)
	for {
		select {
		case _, ok := <-c:
			if !ok {
				return
			}
		case <-timeout:
			t.Fatalf("%s did not end", what)
		}
	}
}

// Event waits for an event of a type, and drops others that come before.
func Event(t testing.TB, from <-chan []byte, kind string) gjson.Result {
	t.Helper()
	for {
		if r := gjson.ParseBytes(Take(t, from, kind)); r.Get("type").String() == kind {
			return r
		}
	}
}

// Eventually waits until ok returns true.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for until := time.Now().Add(Patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("no %s", what)
		}
	}
}

// NoLeaks fails a test if more goroutines run after its end than now.
func NoLeaks(t testing.TB) {
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		for until := time.Now().Add(Patience); runtime.NumGoroutine() > before; {
			if time.Now().After(until) {
				all := make([]byte, 1<<16)
				t.Errorf("%d goroutines, %d before\n%s", runtime.NumGoroutine(), before, all[:runtime.Stack(all, true)])
				return
			}
			http.DefaultClient.CloseIdleConnections()
			time.Sleep(time.Millisecond)
		}
	})
}

// Sound returns an audio delta of a model, with so many milliseconds of µ-law of one byte value.
func Sound(response, item string, ms int, value byte) string {
	audio := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{value}, ms*FrameBytes/20))
	return `{"type":"response.output_audio.delta","response_id":"` + response + `","item_id":"` + item +
		`","output_index":0,"content_index":0,"delta":"` + audio + `"}`
}
