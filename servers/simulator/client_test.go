package simulator

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// patience is how long a test waits for something that must come.
const patience = 3 * time.Minute

// serve serves one machine on loopback until the test ends and returns its address.
func serve(t *testing.T, w *World, machine string) string {
	t.Helper()
	addr, stop := serveUntil(t, w, machine)
	t.Cleanup(stop)
	return addr
}

func serveUntil(t *testing.T, w *World, machine string) (addr string, stop func()) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Serve(ctx, machine, ln) }()
	return ln.Addr().String(), func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("serve: %v", err)
			}
		case <-time.After(patience):
			t.Error("serve does not end")
		}
	}
}

// A client is a raw app-server client.
type client struct {
	t    *testing.T
	ws   *websocket.Conn
	next int
	in   chan message // closed when the connection ended
	seen []string     // transcript of all messages
}

// A message is anything the server sends.
type message struct {
	ID     *int            `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int
		Message string
		Data    json.RawMessage
	} `json:"error"`
	At int64 `json:"emittedAtMs"`
}

// connect dials and initializes.
func connect(t *testing.T, addr string) *client {
	t.Helper()
	c := dial(t, addr)
	c.call("initialize", `{"clientInfo":{"name":"test","version":"1"},"capabilities":{"experimentalApi":true}}`)
	c.send(`{"method":"initialized"}`)
	c.until("remoteControl/status/changed")
	c.seen = nil
	return c
}

func dial(t *testing.T, addr string) *client {
	t.Helper()
	ws, _, err := websocket.DefaultDialer.DialContext(t.Context(), "ws://"+addr+"/", nil)
	must(t, err)
	c := &client{t: t, ws: ws, in: make(chan message, 10000)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(c.in)
		for {
			var m message
			if err := ws.ReadJSON(&m); err != nil {
				return
			}
			c.in <- m
		}
	}()
	t.Cleanup(func() { _ = ws.Close(); <-ended })
	return c
}

func (c *client) send(text string) {
	c.t.Helper()
	must(c.t, c.ws.WriteMessage(websocket.TextMessage, []byte(text)))
}

// request sends a request and returns its id.
func (c *client) request(method, params string) int {
	c.t.Helper()
	c.next++
	c.seen = append(c.seen, "> "+method)
	c.send(fmt.Sprintf(`{"id":%d,"method":%q,"params":%s}`, c.next, method, params))
	return c.next
}

// receive takes the next message.
func (c *client) receive() (message, bool) {
	c.t.Helper()
	select {
	case m, ok := <-c.in:
		if ok {
			c.seen = append(c.seen, m.line())
		}
		return m, ok
	case <-time.After(patience):
		c.t.Fatalf("nothing comes; so far:\n%s", strings.Join(c.seen, "\n"))
		return message{}, false
	}
}

// call sends a request and returns its reply.
func (c *client) call(method, params string) message {
	c.t.Helper()
	id := c.request(method, params)
	for {
		m, ok := c.receive()
		if !ok {
			c.t.Fatalf("%s: the connection ended", method)
		}
		if m.Method == "" && m.ID != nil && *m.ID == id {
			return m
		}
	}
}

// until takes messages up to one of a method.
func (c *client) until(method string) message {
	c.t.Helper()
	for {
		m, ok := c.receive()
		if !ok {
			c.t.Fatalf("the connection ended before %s", method)
		}
		if m.Method == method {
			return m
		}
	}
}

// refused calls and returns the text of the error.
func (c *client) refused(method, params string) string {
	c.t.Helper()
	m := c.call(method, params)
	if m.Error == nil {
		return "accepted: " + string(m.Result)
	}
	return fmt.Sprintf("%d %s", m.Error.Code, m.Error.Message)
}

// ended waits for the end of the connection.
func (c *client) ended() {
	c.t.Helper()
	for {
		if _, ok := c.receive(); !ok {
			return
		}
	}
}

// answer answers a request of the server.
func (c *client) answer(id int, decision string) {
	c.t.Helper()
	c.result(id, fmt.Sprintf(`{"decision":%q}`, decision))
}

func (c *client) result(id int, result string) {
	c.t.Helper()
	c.seen = append(c.seen, "> answer")
	c.send(fmt.Sprintf(`{"id":%d,"result":%s}`, id, result))
}

// start makes a thread and returns its id.
func (c *client) start() string {
	c.t.Helper()
	m := c.call("thread/start", `{"cwd":"/home/me/src/shop"}`)
	c.until("thread/started")
	return field[string](c.t, m.Result, "thread", "id")
}

func (c *client) turn(thread, text string) string {
	return fmt.Sprintf(`{"threadId":%q,"input":[{"type":"text","text":%q,"text_elements":[]}],`+
		`"clientUserMessageId":"client-1"}`, thread, text)
}

// line names a message as transcripts do: "< response", "< method" with the type of its item or status.
func (m message) line() string {
	if m.Method == "" {
		return "< response"
	}
	var p struct {
		Item   struct{ Type string }
		Status struct {
			Type        string
			ActiveFlags []string
		}
		Turn struct{ Status string }
	}
	_ = json.Unmarshal(m.Params, &p) // "" without such a field
	var text strings.Builder
	text.WriteString("< " + m.Method)
	for _, more := range []string{p.Item.Type, p.Status.Type, strings.Join(p.Status.ActiveFlags, " "), p.Turn.Status} {
		if more != "" {
			text.WriteString(" " + more)
		}
	}
	return text.String()
}

// field returns a value out of JSON.
func field[T any](t *testing.T, raw json.RawMessage, path ...string) T {
	t.Helper()
	for _, name := range path {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(raw, &object); err != nil {
			t.Fatalf("%s in %s: %v", name, raw, err)
		}
		raw = object[name]
	}
	var value T
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &value); err != nil {
			t.Fatalf("%v in %s: %v", path, raw, err)
		}
	}
	return value
}

// must ends a test that cannot go on after err.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
