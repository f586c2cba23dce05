package realtime

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"testing"

	"switchboard/handoff"
)

// TestLongHandshake: what a model's server answers to the handshake is read up to a bound.
func TestLongHandshake(t *testing.T) {
	const most = 8 << 20
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	wrote := make(chan int, 1)
	go func() {
		n := 0
		defer func() { wrote <- n }()
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
			return
		}
		for head := "HTTP/1.1 101 Switching Protocols\r\n"; n < most; head = "X-Long: " + strings.Repeat("x", 1000) + "\r\n" {
			m, err := conn.Write([]byte(head))
			if n += m; err != nil {
				return
			}
		}
	}()
	front, err := NewFront(Config{ModelURL: "ws://" + l.Addr().String(), Router: &listener{}})
	if err != nil {
		t.Fatal(err)
	}
	defer front.media.Close()
	_, fault := front.dialModel(t.Context(), "", http.Header{})
	if fault == nil || fault.Code != handoff.CodeVoiceUnreachable || !strings.Contains(fault.Detail, handoff.ErrLongHandshake.Error()) {
		t.Errorf("dialled: %v", fault)
	}
	if n := <-wrote; n >= most {
		t.Errorf("all %d bytes of the answer were read", n)
	}
}
