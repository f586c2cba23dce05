package realtime

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

const benchFrames = 1000

// BenchmarkRelay sends 1,000 audio events from a client to the model, through a call and, for comparison, through a
// plain copy of bytes.
func BenchmarkRelay(b *testing.B) {
	frame := []byte(`{"type":"input_audio_buffer.append","audio":"` + strings.Repeat("A", 1280) + `"}`)
	for _, relay := range []struct {
		name string
		open func(*testing.B, string) string
	}{{"call", benchFront}, {"copy", benchCopy}} {
		b.Run(relay.name, func(b *testing.B) {
			arrived := make(chan struct{})
			model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				conn, err := (&websocket.Upgrader{ReadBufferSize: 16 << 10}).Upgrade(w, r, nil)
				if err != nil {
					return
				}
				defer func() { _ = conn.Close() }()
				for n := 0; ; {
					_, r, err := conn.NextReader()
					if err != nil {
						return
					}
					if _, err := io.Copy(io.Discard, r); err != nil {
						return
					}
					if n++; n%benchFrames == 0 {
						arrived <- struct{}{}
					}
				}
			}))
			defer model.Close()
			client := connects(b, relay.open(b, model.Listener.Addr().String()))
			b.ReportAllocs()
			for b.Loop() {
				for range benchFrames {
					if err := client.WriteMessage(websocket.TextMessage, frame); err != nil {
						b.Fatal(err)
					}
				}
				<-arrived
			}
		})
	}
}

func benchFront(b *testing.B, model string) string {
	return serves(b, runs(b, Config{ModelURL: "ws://" + model, Router: &listener{}}).ServeWebSocket)
}

func benchCopy(b *testing.B, model string) string {
	l := listenLocal(b)
	go func() {
		near, err := l.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", model)
		if err != nil {
			return
		}
		go func() { _, _ = io.Copy(near, far); _ = near.Close() }()
		_, _ = io.Copy(far, near)
		_ = far.Close()
	}()
	return "http://" + l.Addr().String()
}

// BenchmarkFrame is what one frame of sound costs in its call, without sockets: of the caller, of a response that sends
// sound as fast as it is heard, and of one that never began. The loop must not wake for it.
func BenchmarkFrame(b *testing.B) {
	sound := strings.Repeat("A", 1280) // 20 ms
	for name, frame := range map[string]string{
		"caller": `{"type":"input_audio_buffer.append","audio":"` + sound + `"}`,
		"model": `{"type":"response.output_audio.delta","event_id":"e","response_id":"r1","item_id":"i1","delta":"` + sound +
			`"}`,
		"stray": `{"type":"response.output_audio.delta","response_id":"never","item_id":"i1","delta":"` + sound + `"}`,
	} {
		b.Run(name, func(b *testing.B) {
			client, model := &sink{}, &sink{}
			c := newCall(someone, ours, "rtc_bench", client, model, nopLog())
			c.renewal.enable(nil) // as every call through us: the caller's sound is kept
			for _, e := range []string{freshSession, began("r1", "")} {
				c.takeFrom(model)([]byte(e))
			}
			take, event := c.takeFrom(client), []byte(frame)
			if name != "caller" {
				take = c.takeFrom(model)
			}
			take(event)
			c.look()
			select {
			case <-c.again:
			default:
			}
			b.ReportAllocs()
			for b.Loop() {
				take(event)
			}
			if len(c.again) > 0 {
				b.Error("the loop was woken")
			}
		})
	}
}

// sink is a leg that takes everything. It is not empty, so that each one has an address of its own.
type sink struct {
	nobody
	_ int
}

func (*sink) Flush() {}

// BenchmarkRequest measures from the model's event to the router's request, without sockets.
func BenchmarkRequest(b *testing.B) {
	c := newCall(someone, ours, "rtc_bench", newWire(), newWire(), nopLog())
	c.fromModel([]byte(freshSession))
	event := itemDone("r1", callItem("item_1", "call_1", "codex", events.StatusCompleted))
	c.fromModel([]byte(began("r1", "")))
	b.ReportAllocs()
	for b.Loop() {
		c.fromModel([]byte(event))
		if len(c.pending) != 1 {
			b.Fatal("no request")
		}
		c.pending = c.pending[:0]
		delete(c.saying.requests, "call_1")
	}
}

// BenchmarkAnswered is a request and its answer, without sockets, and what they leave in the memory of a call that goes
// on: ids, so that nothing counts twice and the client sees none of it.
func BenchmarkAnswered(b *testing.B) {
	model, n := newWire(), 0
	c := newCall(someone, ours, "rtc_bench", newWire(), model, nopLog())
	c.fromModel([]byte(freshSession))
	answer := func() {
		n++
		response, call, said := fmt.Sprint("r", n), fmt.Sprint("call_", n), fmt.Sprint("said-", n)
		c.fromModel([]byte(began(response, "")))
		c.fromModel([]byte(itemDone(response, callItem(fmt.Sprint("item_", n), call, "codex", events.StatusCompleted))))
		c.fromModel([]byte(`{"type":"response.done","response":{"id":"` + response + `","status":"completed"}}`))
		c.saying.say(handoff.Utterance{ID: said, CallID: call, Text: strings.Repeat("All tests pass. ", 200),
			Tells: []string{said}})
		c.fromModel([]byte(`{"type":"conversation.item.added","item":{"id":"` + itemPrefix + said +
			`","type":"function_call_output"}}`))
		c.pending = nil
		model.sent()
	}
	for range 100 {
		answer()
	}
	before := liveHeap()
	for b.Loop() {
		answer()
	}
	b.ReportMetric((liveHeap()-before)/float64(b.N), "kept-B/op")
	if u := c.saying.utterances[fmt.Sprint("said-", n)]; !u.acked || u.Text != "" {
		b.Errorf("the words of the answer are kept: %+v", u)
	}
}

// BenchmarkPeek is what every event costs before anything is decided.
func BenchmarkPeek(b *testing.B) {
	event := []byte(`{"type":"input_audio_buffer.append","audio":"` + strings.Repeat("A", 1280) + `"}`)
	b.ReportAllocs()
	for b.Loop() {
		if events.PeekType(event) != events.TypeAppend {
			b.Fatal("wrong type")
		}
	}
}
