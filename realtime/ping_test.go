package realtime

import (
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// Far ends that ping are answered, with what they sent last, and what is written after that has its own time: the
// library would leave it a second from the ping on.
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
