package realtime

import (
	"encoding/binary"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"switchboard/handoff"
)

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

// The reader alone knows why: the library says 1009 itself, and what cannot be written after that is no reason.
func TestFrameOverTheLimitIsTheReason(t *testing.T) {
	h := newHouse(t)
	client, model := h.call("")
	client.SetCloseHandler(func(int, string) error { return nil }) // no answer
	ended := h.endOf()
	h.front.mu.Lock()
	for _, c := range h.front.calls {
		s := c.legs.client.(*socket)
		// As the library does, while the reader has not come back from it.
		_ = s.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseMessageTooBig, ""), time.Now().Add(patience))
	}
	h.front.mu.Unlock()
	expectClose(t, client, websocket.CloseMessageTooBig)
	send(t, model, `{"type":"x"}`) // it cannot be written
	send(t, model, `{"type":"x"}`)
	_, _ = client.NetConn().Write([]byte{0x81, 0x80 | 127, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0})
	if cause := take(t, ended, "end"); cause == nil || handoff.AsError(cause).Code != handoff.CodeTooLarge {
		t.Fatalf("ended with %v", cause)
	}
}
