package realtime

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/tidwall/gjson"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// The newest ping of a far end is answered, and later writes have their usual time: the library's own answer would
// leave a deadline of a second.
func TestPingsAreAnswered(t *testing.T) {
	h := newHouse(t)
	client, model := h.call("")
	for _, far := range []*websocket.Conn{client, model} {
		pongs := make(chan string, 8)
		far.SetPongHandler(func(data string) error { pongs <- data; return nil })
		for _, data := range []string{"one", "two", "three"} {
			if err := far.WriteControl(websocket.PingMessage, []byte(data), time.Now().Add(patience)); err != nil {
				t.Fatal(err)
			}
		}
		go func() { // pongs are read on the way to an event
			time.Sleep(1100 * time.Millisecond)
			if far == client {
				_ = model.WriteMessage(websocket.TextMessage, []byte(`{"type":"rate_limits.updated"}`))
			} else {
				_ = client.WriteMessage(websocket.TextMessage, []byte(`{"type":"rate_limits.updated"}`))
			}
		}()
		expect(t, far, "rate_limits.updated")
		last := ""
		for len(pongs) > 0 {
			last = <-pongs
		}
		if last != "three" {
			t.Errorf("the last pong is %q", last)
		}
	}
}

// Sound arrives unchanged and in order, although its buffers are used again and again.
func TestSoundIsNotMixedUp(t *testing.T) {
	h := newHouse(t)
	client, model := h.call("")
	other := h.besideIt(h.front.Calls(someone)[0].ID)
	expect(t, other, "session.created")
	send(t, model, began("r1", ""))
	expect(t, client, "response.created")
	expect(t, other, "response.created")
	const events = 500
	sound := func(kind, key string, n int) string {
		return fmt.Sprintf(`{"type":%q,"response_id":"r1","item_id":"i1",%q:"%s"}`, kind, key,
			strings.Repeat(fmt.Sprintf("%04d", n), 1+n%900))
	}
	send(t, client, `{"type":"input_audio_buffer.clear"}`)
	expect(t, model, "input_audio_buffer.clear")
	go func() {
		for n := range events {
			_ = model.WriteMessage(websocket.TextMessage, []byte(sound("response.output_audio.delta", "delta", n)))
		}
	}()
	go func() {
		for n := range events {
			_ = client.WriteMessage(websocket.TextMessage, []byte(sound("input_audio_buffer.append", "audio", n)))
		}
	}()
	for n := range events {
		for _, far := range []*websocket.Conn{client, other} {
			if got := expect(t, far, "response.output_audio.delta"); got != sound("response.output_audio.delta", "delta", n) {
				t.Fatalf("delta %d is %.80s", n, got)
			}
		}
		if got := expect(t, model, "input_audio_buffer.append"); got != sound("input_audio_buffer.append", "audio", n) {
			t.Fatalf("append %d is %.80s", n, got)
		}
	}
}

// An event that may be kept is in no buffer that is used again.
func TestOnlySoundIsLent(t *testing.T) {
	const text = `{"type":"response.create"}`
	event, err := readEvent(strings.NewReader(text))
	for range 8 {
		sound, _ := readEvent(strings.NewReader(`{"type":"input_audio_buffer.append","audio":"AAAA"}`))
		giveBack(sound)
		giveBack(event)
	}
	if string(event) != text || err != nil {
		t.Errorf("it became %s, %v", event, err)
	}
}

// The library reads the frames that we write, on either side and for every form of length.
func TestFrames(t *testing.T) {
	lengths := []int{0, 1, 7, 8, 9, 125, 126, 127, 1300, 0xffff, 0x10000, 0x12345}
	whole := bytes.Repeat([]byte("sound."), 0x4000)
	read := func(far *websocket.Conn) {
		for _, n := range lengths {
			kind, got, err := far.ReadMessage()
			if err != nil || kind != websocket.TextMessage || !bytes.Equal(got, whole[:n]) {
				t.Errorf("%d bytes: %d came, kind %d, %v", n, len(got), kind, err)
			}
		}
	}
	served := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(served)
		conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		var all []byte
		for _, n := range lengths {
			all = appendFrame(all, wholeText, whole[:n], false)
		}
		_, _ = conn.NetConn().Write(all)
		read(conn)
	}))
	defer s.Close()
	conn, _, err := websocket.DefaultDialer.Dial("ws"+s.URL[len("http"):], nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	var all []byte
	for _, n := range lengths {
		all = appendFrame(all, wholeText, whole[:n], true)
	}
	if bytes.Contains(all, whole[:100]) {
		t.Error("a client's frame is not masked")
	}
	_, _ = conn.NetConn().Write(all)
	read(conn)
	<-served
}

// deepChild marks the child process that reads deep JSON.
const deepChild = "SWITCHBOARD_TEST_DEEP"

// deep is JSON that nests as deep as a hostile peer likes, behind a head of fields.
func deep(head string) string { return head + `"a":` + strings.Repeat("[", 1_000_000) }

// TestDeepFrames gives every door of a call JSON that nests a million levels deep, in a child process with a small
// stack: a recursing parser would crash it.
func TestDeepFrames(t *testing.T) {
	if os.Getenv(deepChild) == "" {
		child := exec.Command(os.Args[0], "-test.run=^TestDeepFrames$")
		child.Env = append(os.Environ(), deepChild+"=1")
		if out, err := child.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out[:min(len(out), 2000)])
		}
		return
	}
	debug.SetMaxStack(1 << 20)
	t.Run("client", testDeepClient)
	t.Run("model", testDeepModel)
	t.Run("offer", func(t *testing.T) {
		fault := CheckSession([]byte(deep("{")))
		if fault == nil || fault.Code != handoff.CodeMalformed {
			t.Errorf("got %v", fault)
		}
	})
}

// testDeepClient also holds that the refusal names the event, and that nothing else is lost.
func testDeepClient(t *testing.T) {
	play(t, func(s *stage) {
		for _, head := range []string{
			`{"type":"x","event_id":"e7",`, `{"event_id":"e7","type":"session.update",`,
			`{"type":"response.create","event_id":"e7",`,
			`{"type":"conversation.item.create","event_id":"e7",`,
			`{"type":"input_audio_buffer.append","event_id":"e7","audio":"AAAA",`,
		} {
			s.fromClient(deep(head))
			got := s.wantSent(s.client, "error")[0]
			if gjson.Get(got, "error.type").String() != "invalid_request_error" ||
				gjson.Get(got, "error.event_id").String() != "e7" {
				t.Errorf("refused with %s", got)
			}
		}
		s.fromClient(deep("{"))
		if got := s.wantSent(s.client, "error")[0]; gjson.Get(got, "error.event_id").Type != gjson.Null {
			t.Errorf("refused with %s", got)
		}
		s.wantSent(s.model, "")
		s.fromClient(deep(`{"type":"input_audio_buffer.append",`) + "}") // looks whole, and is passed on as sound is
		s.wantSent(s.model, "input_audio_buffer.append")
		s.fromClient(`{"type":"input_audio_buffer.clear"}`)
		s.wantSent(s.model, "input_audio_buffer.clear")
	})
}

func testDeepModel(t *testing.T) {
	play(t, func(s *stage) {
		for _, kind := range []string{"x", events.TypeSessionUpdated, events.TypeDone, events.TypeAudioDelta,
			events.TypeError, events.TypeItemDone} {
			s.fromModel(deep(`{"type":"` + kind + `",`))
		}
		s.wantSent(s.client, "")
		s.fromModel(deep(`{"type":"`+events.TypeAudioDelta+`",`) + "}") // looks whole, and is passed on as sound is
		s.wantSent(s.client, events.TypeAudioDelta)
		if s.call.counts.unreadable != 6 {
			t.Errorf("%d frames were counted", s.call.counts.unreadable)
		}
		s.fromModel(`{"type":"rate_limits.updated"}`)
		s.wantSent(s.client, "rate_limits.updated")
	})
}

// A frame over the limit ends in 1009 however it comes: announced and never sent, longer than anything can
// be, or in pieces.
func TestFrameOverTheLimitHoweverItComes(t *testing.T) {
	h := newHouse(t)
	head := func(fin byte, op byte, length uint64) []byte {
		return append(binary.BigEndian.AppendUint64([]byte{fin | op, 0x80 | 127}, length), 0, 0, 0, 0)
	}
	small := func(fin, op byte) []byte { return append([]byte{fin | op, 0x80 | 3, 0, 0, 0, 0}, "abc"...) }
	for name, write := range map[string]func(net.Conn){
		"announced":            func(c net.Conn) { _, _ = c.Write(head(0x80, 1, maxFrame+1)) },
		"longer than anything": func(c net.Conn) { _, _ = c.Write(head(0x80, 1, 1<<63)) },
		"longest":              func(c net.Conn) { _, _ = c.Write(head(0x80, 1, 1<<63-1)) },
		"in pieces": func(c net.Conn) {
			_, _ = c.Write(append(small(0, 1), head(0, 0, maxFrame)...))
			_, _ = c.Write([]byte(strings.Repeat("A", 1<<20)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, _ := h.call("")
			write(client.NetConn())
			expectClose(t, client, websocket.CloseMessageTooBig)
		})
	}
}

// The reader gives the reason: the library sends 1009 itself, and failed writes after that do not count.
func TestFrameOverTheLimitIsTheReason(t *testing.T) {
	h := newHouse(t)
	client, model := h.call("")
	client.SetCloseHandler(func(int, string) error { return nil }) // no answer
	ended := h.endOf()
	h.front.live.mu.Lock()
	for _, c := range h.front.live.calls {
		s := c.legs.client.(*socket)
		// As the library does, while the reader has not come back from it.
		_ = s.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseMessageTooBig, ""),
			time.Now().Add(patience))
	}
	h.front.live.mu.Unlock()
	expectClose(t, client, websocket.CloseMessageTooBig)
	send(t, model, `{"type":"x"}`) // it cannot be written
	send(t, model, `{"type":"x"}`)
	_, _ = client.NetConn().Write([]byte{0x81, 0x80 | 127, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0})
	if cause := take(t, ended, "end"); cause == nil || handoff.AsError(cause).Code != handoff.CodeTooLarge {
		t.Fatalf("ended with %v", cause)
	}
}
