package host

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
)

// within is the policy in these tests.
var within = Policy{Ceiling: "workspace-write", Answers: false}

// TestGatePassesWhatItJudged: the app-server gets exactly what the gate has judged. Go's decoder ignores the case of
// field names and takes the last of several fields; an app-server may take another one.
func TestGatePassesWhatItJudged(t *testing.T) {
	t.Parallel()
	const no = `{"id":4,"result":{"action":"decline","answers":{},"decision":"decline","permissions":{},"scope":"turn"}}`
	for _, row := range []struct {
		name, sent string
		want       string // what reaches the app-server; "": nothing does
	}{
		{"a method that gives work", `{"id":1,"method":"thread/start","params":{"cwd":"/src","sandbox":"read-only"}}`,
			`{"id":1,"method":"thread/start","params":{"cwd":"/src","sandbox":"read-only"}}`},
		{"a new session without a sandbox", `{"id":1,"method":"thread/start","params":{"cwd":"/src"}}`,
			`{"id":1,"method":"thread/start","params":{"cwd":"/src","sandbox":"workspace-write"}}`},
		{"work in a session that may", `{"id":1,"method":"turn/start","params":{"input":[{"text":"a < b","type":"text"}],"threadId":"may"}}`,
			`{"id":1,"method":"turn/start","params":{"input":[{"text":"a \u003c b","type":"text"}],"threadId":"may"}}`},
		{"work in a session that may not", `{"id":1,"method":"turn/start","params":{"threadId":"mayNot","input":[]}}`, ""},
		{"work in a session that is not open", `{"id":1,"method":"turn/start","params":{"threadId":"other","input":[]}}`, ""},
		{"a command", `{"id":1,"method":"command/exec","params":{"command":["id"]}}`, ""},
		{"a command under another method",
			`{"id":1,"method":"command/exec","params":{"command":["id"]},"METHOD":"initialized","PARAMS":{}}`, ""},
		{"two methods", `{"id":1,"method":"command/exec","method":"initialized"}`, `{"id":1,"method":"initialized"}`},
		{"a parameter in other letters", `{"id":1,"method":"thread/start","params":{"sandbox":"danger-full-access","SANDBOX":"read-only"}}`, ""},
		{"two sandboxes", `{"id":1,"method":"thread/start","params":{"sandbox":"danger-full-access","sandbox":"read-only"}}`,
			`{"id":1,"method":"thread/start","params":{"sandbox":"read-only"}}`},
		{"a sandbox that is no text", `{"id":1,"method":"thread/start","params":{"sandbox":{"type":"x"}}}`, ""},
		{"a looser sandbox", `{"id":1,"method":"thread/start","params":{"sandbox":"danger-full-access"}}`, ""},
		{"a file for input", `{"id":1,"method":"turn/start","params":{"threadId":"may","input":[{"type":"localImage","path":"/k"}]}}`, ""},
		{"a file under another type",
			`{"id":1,"method":"turn/start","params":{"threadId":"may","input":[{"type":"localImage","path":"/k","TYPE":"text"}]}}`, ""},
		{"two types", `{"id":1,"method":"turn/start","params":{"threadId":"may","input":[{"type":"localImage","type":"text"}]}}`,
			`{"id":1,"method":"turn/start","params":{"input":[{"type":"text"}],"threadId":"may"}}`},
		{"work with no parameters", `{"id":1,"method":"turn/start"}`, ""},
		{"work with parameters that are nothing", `{"id":1,"method":"turn/start","params":null}`, ""},
		{"a method and an answer", `{"id":4,"method":"thread/list","result":{"decision":"accept"}}`, ""},
		{"many messages in one", `[{"id":1,"method":"initialized"}]`, ""},

		{"a no", `{"id":4,"result":{"decision":"decline"}}`, `{"id":4,"result":{"decision":"decline"}}`},
		{"a no that ends the work", `{"id":4,"result":{"decision":"cancel"}}`, `{"id":4,"result":{"decision":"cancel"}}`},
		{"an error", `{"id":4,"error":{"code":1,"message":"m"}}`, `{"error":{"code":1,"message":"m"},"id":4}`},
		{"a yes", `{"id":4,"result":{"decision":"accept"}}`, no},
		{"a yes with conditions", `{"id":4,"result":{"decision":{"acceptWithExecpolicyAmendment":{}}}}`, no},
		{"a yes under a no", `{"id":4,"result":{"decision":"accept"},"RESULT":{"decision":"decline"}}`, ""},
		{"a yes under a no within", `{"id":4,"result":{"decision":"accept","DECISION":"decline"}}`, no},
		{"a yes to a form beside a no", `{"id":4,"result":{"decision":"decline","action":"accept"}}`, no},
		{"rights beside a no", `{"id":4,"result":{"decision":"decline","permissions":{"network":{}},"scope":"session"}}`, no},
		{"answers beside a no", `{"id":4,"result":{"decision":"decline","answers":{"q":{"answers":["yes"]}}}}`, no},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEnds(t, within)
				e.opens(t, "may", "workspaceWrite")
				e.opens(t, "mayNot", "dangerFullAccess")
				e.agent.say(t, `{"id":4,"method":"`+askCommand+`","params":{}}`)
				<-e.service.got
				e.service.say(t, row.sent)
				e.service.say(t, `{"id":9,"method":"thread/list","params":{}}`) // the next that passes
				got := <-e.agent.got
				if strings.Contains(got, "thread/list") {
					got = ""
				}
				if got != row.want {
					t.Errorf("the app-server got %s, want %s", got, row.want)
				}
			})
		})
	}
}

// TestGateRefusesLater: a request that is refused long after the app-server's last message is answered, and the
// connection goes on.
func TestGateRefusesLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEnds(t, within)
		e.agent.say(t, `{"method":"turn/completed","params":{}}`)
		<-e.service.got
		time.Sleep(2 * writeWithin)
		e.service.say(t, `{"id":1,"method":"command/exec","params":{}}`)
		if got := <-e.service.got; !strings.Contains(got, errMethod.Error()) {
			t.Errorf("it was told %s", got)
		}
	})
}

// ends are the service and the app-server with a gate between them.
type ends struct{ service, agent end }

// An end is a connection, and what it got.
type end struct {
	*websocket.Conn
	got chan string // closed once the connection has ended
}

func newEnd(conn *websocket.Conn) end {
	e := end{conn, make(chan string, 10)} // more than any test sends
	go func() {
		defer close(e.got)
		for {
			_, data, err := conn.ReadMessage()
			if err != nil {
				return
			}
			e.got <- string(data)
		}
	}()
	return e
}

func newEnds(t *testing.T, policy Policy) ends {
	t.Helper()
	near, far := net.Pipe()
	accepted := make(chan end)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		serveOne(far, func(conn *websocket.Conn) {
			agent := newEnd(conn)
			accepted <- agent
			<-t.Context().Done()
		})
	}()
	line := gated(near, newGate(policy))
	dialer := websocket.Dialer{
		NetDialContext: func(context.Context, string, string) (net.Conn, error) { return line, nil },
	}
	conn, _, err := dialer.Dial("ws://localhost/", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close() // it is gone either way
		<-ended
	})
	return ends{newEnd(conn), <-accepted}
}

// opens has the service open a session. The app-server answers with a sandbox.
func (e ends) opens(t *testing.T, thread, sandbox string) {
	t.Helper()
	e.service.say(t, `{"id":"`+thread+`","method":"thread/resume","params":{"threadId":"`+thread+`"}}`)
	<-e.agent.got
	e.agent.say(
		t,
		`{"id":"`+thread+`","result":{"thread":{"id":"`+thread+`"},"cwd":"/src","sandbox":{"type":"`+sandbox+`"}}}`,
	)
	<-e.service.got
}

func (e end) say(t *testing.T, text string) {
	t.Helper()
	if err := e.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		t.Fatal(err)
	}
}
