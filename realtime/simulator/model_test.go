package simulator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	"github.com/tidwall/gjson"

	"switchboard/realtime/rtc/rtctest"
)

// client reads events of a real connection.
type client struct {
	t  *testing.T
	ws *websocket.Conn
}

func connect(t *testing.T, p *rtctest.Pipes) *client {
	t.Helper()
	d := websocket.Dialer{NetDialContext: p.Dial, Subprotocols: []string{"realtime", "openai-insecure-api-key.x"}}
	ws, _, err := d.Dial("ws://127.0.0.1/v1/realtime?model=anything", nil)
	if err != nil {
		t.Fatal(err)
	}
	if ws.Subprotocol() != "realtime" {
		t.Errorf("subprotocol %q", ws.Subprotocol())
	}
	c := &client{t: t, ws: ws}
	c.await("session.created")
	return c
}

func (c *client) send(format string, args ...any) {
	c.t.Helper()
	if err := c.ws.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, format, args...)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) next() gjson.Result {
	c.t.Helper()
	kind, data, err := c.ws.ReadMessage()
	if err != nil || kind != websocket.TextMessage {
		c.t.Fatalf("type %d, %v", kind, err)
	}
	return gjson.ParseBytes(data)
}

// await reads until an event of this type.
func (c *client) await(kind string) gjson.Result {
	c.t.Helper()
	for {
		if e := c.next(); e.Get("type").Str == kind {
			return e
		}
	}
}

// closed reads until the connection ends and returns its close code, 0 for none.
func (c *client) closed() int {
	for {
		if _, _, err := c.ws.ReadMessage(); err != nil {
			if e, ok := errors.AsType[*websocket.CloseError](err); ok && e.Code != websocket.CloseAbnormalClosure {
				return e.Code
			}
			return 0
		}
	}
}

// serve runs a test against a served model in a bubble: one that leaves a goroutine behind fails.
func serve(t *testing.T, config Config, test func(t *testing.T, p *rtctest.Pipes, stop func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { served(t, config, test) })
}

// served is serve in a bubble that there is.
func served(t *testing.T, config Config, test func(t *testing.T, p *rtctest.Pipes, stop func())) {
	t.Helper()
	p := rtctest.NewPipes()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- New(config).Serve(ctx, p) }()
	stop := func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("served until %v", err)
		}
		ended <- nil
	}
	test(t, p, stop)
	stop()
}

func TestCallOverASocket(t *testing.T) {
	serve(t, Config{}, func(t *testing.T, p *rtctest.Pipes, _ func()) {
		c := connect(t, p)
		defer c.ws.Close()
		c.send(`{"type":"session.update","session":{"type":"realtime","tools":[{"type":"function","name":"list_servers"}]}}`)
		c.await("session.updated")
		c.send(`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text",` +
			`"text":"Which machines do I have?"}]}}`)
		c.send(`{"type":"response.create"}`)
		call := c.await("response.output_item.done").Get("item")
		if call.Get("name").Str != "list_servers" || call.Get("status").Str != "completed" {
			t.Fatal(call.Raw)
		}
		c.await("response.done")
		c.send(`{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":%q,`+
			`"output":"{\"say\":\"bigpc and laptop are ready, attic is down.\"}"}}`, call.Get("call_id").Str)
		c.send(`{"type":"response.create"}`)
		began := time.Now()
		if said := c.await("response.output_audio_transcript.done").Get("transcript").Str; said != "bigpc and laptop are "+
			"ready, attic is down." {
			t.Errorf("said %q", said)
		}
		if took := time.Since(began); took != 3*time.Second-lead { // eight words
			t.Errorf("spoke for %v", took)
		}
	})
}

func TestServeEndsItsConnections(t *testing.T) {
	serve(t, Config{}, func(t *testing.T, p *rtctest.Pipes, stop func()) {
		var wg sync.WaitGroup
		for range 3 {
			c := connect(t, p)
			c.send(`{"type":"response.create"}`)
			wg.Go(func() {
				if code := c.closed(); code != closeGoingAway {
					t.Errorf("closed with %d", code)
				}
				c.ws.Close()
			})
		}
		synctest.Wait()
		stop()
		wg.Wait()
	})
}

func TestServeDoesNotWaitForADeafClient(t *testing.T) {
	serve(t, Config{}, func(t *testing.T, p *rtctest.Pipes, stop func()) {
		c := connect(t, p)
		c.send(`{"type":"response.create"}`) // and nobody reads: on a pipe the first write waits
		synctest.Wait()
		began := time.Now()
		stop()
		if took := time.Since(began); took < endWait || took > 3*endWait {
			t.Errorf("stopping took %v: it waits for its connections, and they for little", took)
		}
		c.ws.Close()
	})
}

func TestSlowClientIsDisconnected(t *testing.T) {
	script := steps(says(strings.Repeat("word ", 3000)))
	serve(t, Config{Script: script}, func(t *testing.T, p *rtctest.Pipes, _ func()) {
		c := connect(t, p)
		c.send(`{"type":"response.create"}`)
		time.Sleep(writeWait + 2*endWait) // nobody reads
		began := time.Now()
		if code := c.closed(); code != 0 || time.Since(began) != 0 {
			t.Errorf("closed with %d after another %v", code, time.Since(began))
		}
		c.ws.Close()
	})
}

func TestOutboxIsBounded(t *testing.T) {
	s := &socket{out: make(chan []byte, 2)}
	if !s.Send([]byte{1}) || !s.Send([]byte{2}) || s.Send([]byte{3}) {
		t.Error("two frames fit, and no third")
	}
	s = &socket{out: make(chan []byte, 2)}
	if s.Send(make([]byte, maxUnsent+1)) {
		t.Error("more bytes than the bound fit")
	}
}

func TestHugeFrameEndsTheConnection(t *testing.T) {
	serve(t, Config{}, func(t *testing.T, p *rtctest.Pipes, _ func()) {
		c := connect(t, p)
		wrote := make(chan error, 1)
		go func() { wrote <- c.ws.WriteMessage(websocket.TextMessage, make([]byte, maxFrame+4<<20)) }()
		if code := c.closed(); code != websocket.CloseMessageTooBig {
			t.Errorf("closed with %d", code)
		}
		// on TCP a reset would overtake the close frame
		if err := <-wrote; err != nil && !errors.Is(err, websocket.ErrCloseSent) {
			t.Errorf("it was cut while it wrote: %v", err)
		}
		c.ws.Close()
	})
}

func TestSessionEndsAtItsWall(t *testing.T) {
	walls := make(chan time.Duration)
	serve(t, Config{Walls: walls}, func(t *testing.T, p *rtctest.Pipes, _ func()) {
		c := connect(t, p)
		walls <- time.Minute
		if left := time.Until(time.Unix(c.await("session.updated").Get("session.expires_at").Int(), 0)); left > time.Minute ||
			left <= time.Minute-time.Second {
			t.Errorf("%v are left", left)
		}
		walls <- 0
		if code := c.await("error").Get("error.code").Str; code != "session_expired" {
			t.Errorf("error %s", code)
		}
		c.ws.Close()
	})
}

func TestHTTPRefusals(t *testing.T) {
	h := New(Config{}).handler(t.Context())
	for target, status := range map[string]int{
		"/v1/realtime": http.StatusBadRequest, "/v1/realtime?call_id=x": http.StatusNotFound,
		"/v1/realtime?model=x": http.StatusBadRequest, // no upgrade
		"/":                    http.StatusNotFound, "/v1/realtime/calls": http.StatusNotFound,
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
		body, _ := io.ReadAll(w.Body)
		if w.Code != status || gjson.GetBytes(body, "error.message").Str == "" {
			t.Errorf("%s: %d %s", target, w.Code, body)
		}
	}
	r := httptest.NewRequest("GET", "/v1/realtime?model=x", nil)
	for k, v := range map[string]string{"Connection": "upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
		"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Origin": "https://evil.example"} {
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusForbidden {
		t.Errorf("a foreign page gets %d", w.Code)
	}
}
