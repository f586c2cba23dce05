package realtime

import (
	"bytes"
	crand "crypto/rand"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gorilla/websocket"
)

// What we write as frames the library reads, on either side and of every length that is written in its own way.
func TestFrames(t *testing.T) {
	var seed [32]byte
	_, _ = crand.Read(seed[:])
	keys := rand.NewChaCha8(seed)
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
			all = appendFrame(all, wholeText, whole[:n], nil)
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
		all = appendFrame(all, wholeText, whole[:n], keys)
	}
	if bytes.Contains(all, whole[:100]) {
		t.Error("a client's frame is not masked")
	}
	_, _ = conn.NetConn().Write(all)
	read(conn)
	<-served
}
