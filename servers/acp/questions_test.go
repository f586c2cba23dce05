package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"switchboard/handoff"
	"switchboard/servers"
	"switchboard/servers/jsonrpc"
)

// TestNoForms: an elicitation that is no form, or has unknown fields, takes no words. A form without fields takes a
// yes.
func TestNoForms(t *testing.T) {
	t.Parallel()
	const cannot = "that cannot be answered here."
	for params, yes := range map[string]bool{
		`{"mode":"url","message":"Go there"}`: false,
		`{"mode":"form","message":"a","requestedSchema":{"properties":{"a":{"type":"string"},"b":{"type":"array"}}}}`: false,
		`{"mode":7}`: false,
		`{"mode":"form","message":"May I?","requestedSchema":{"type":"object","properties":{}}}`: true,
	} {
		q, wire := elicitation(json.RawMessage(params))
		_, err := wire.words([][]string{{"x"}})
		if err == nil || q.Words || len(q.Asks) > 0 || q.Kind != handoff.QuestionElicitation ||
			(q.Decisions[0] == handoff.DecisionAccept) != yes || strings.HasSuffix(q.Text, cannot) == yes {
			t.Errorf("%s is %+v, and words fill it: %v", params, q, err)
		}
	}
}

// TestChoices: a permission whose options are no clear yes and no is a choice by name, and no yes.
func TestChoices(t *testing.T) {
	t.Parallel()
	const (
		act   = `"kind":"execute","rawInput":{"command":"go test ./..."}`
		title = `"kind":"other","title":"Which database?"`
	)
	for _, c := range []struct{ name, call, options, asks, beyond string }{
		{"a yes and a no", act, `allow_once Yes|reject_once No`, "", ""},
		{"with a yes for good", act, `allow_once Yes, proceed|allow_always Yes, and don't ask again|reject_once No`, "", ""},
		{"names in another language", act, `allow_once Ausführen|reject_once Lassen`, "", ""},
		{"without names", title, `allow_once |reject_once `, "", ""},
		{"a title with a plain yes and no", title, `allow_once Allow|reject_once Reject`, "", ""},
		{"a refusal alone", act, `reject_once No`, "", ""},
		{"two ways to do it", act, `allow_once Here|allow_once In the sandbox|reject_once No`, "Here;In the sandbox;No", ""},
		{"names that are the question", title, `allow_once Postgres|reject_once MySQL`, "Postgres;MySQL", ""},
		{"one name twice", title, `allow_once Go|allow_once Go`, "Go;Go (o1)", ""},
		{"a kind that is not known", act, `allow_once Yes|allow_today Yes`, "Yes;Yes (o1)", "for longer than this once"},
		{"one holds for good", title, `allow_once A|allow_always B`, "A;B", "for longer than this once"},
	} {
		var options []permissionOption
		for i, o := range strings.Split(c.options, "|") {
			kind, name, _ := strings.Cut(o, " ")
			options = append(options, permissionOption{"o" + strconv.Itoa(i), name, kind})
		}
		k := &turn{session: &session{cwd: "/src"}}
		q, wire := k.permission(json.RawMessage(`{"toolCall":{"toolCallId":"c",` + c.call + `},"options":` +
			handoff.Encode(options) + `}`))
		asks := ""
		if len(q.Asks) > 0 {
			asks = strings.Join(q.Asks[0].Options, ";")
		}
		if asks != c.asks || q.Picks() != (c.asks != "") || !strings.HasSuffix(q.Beyond, c.beyond) ||
			c.beyond == "" && q.Beyond != "" {
			t.Errorf("%s: it asks %q: %+v", c.name, asks, q)
		}
		if c.asks == "" {
			continue
		}
		if slices.Contains(q.Decisions, handoff.DecisionAccept) || q.Decisions[0] != handoff.DecisionDecline {
			t.Errorf("%s: it takes %v", c.name, q.Decisions)
		}
		if _, err := q.Read(handoff.Reply{Words: "yes, please"}); err == nil {
			t.Errorf("%s: a yes chooses one", c.name)
		}
		answers, err := q.Read(handoff.Reply{Words: q.Asks[0].Options[1]})
		if err != nil {
			t.Fatal(c.name, err)
		}
		got, err := wire.words(answers)
		if want := `{"outcome":{"outcome":"selected","optionId":"o1"}}`; err != nil || handoff.Encode(got) != want {
			t.Errorf("%s: the second is %s, %v", c.name, handoff.Encode(got), err)
		}
	}
}

// TestReplies: the answer on the wire for each decision.
func TestReplies(t *testing.T) {
	t.Parallel()
	permission := wireQuestion{options: []permissionOption{
		{"go", "", "allow_once"}, {"ever", "", "allow_always"}, {"not", "", "reject_once"},
	}}
	onlyYes := wireQuestion{options: permission.options[:1]}
	for _, test := range []struct {
		q    wireQuestion
		d    handoff.Decision
		want string
	}{
		{wireQuestion{elicits: true}, handoff.DecisionAccept, `{"action":"accept"}`},
		{wireQuestion{elicits: true}, handoff.DecisionDecline, `{"action":"decline"}`},
		{wireQuestion{elicits: true}, handoff.DecisionStop, `{"action":"cancel"}`},
		{permission, handoff.DecisionAccept, `{"outcome":{"outcome":"selected","optionId":"go"}}`},
		{permission, handoff.DecisionAcceptForSession, `{"outcome":{"outcome":"selected","optionId":"ever"}}`},
		{permission, handoff.DecisionDecline, `{"outcome":{"outcome":"selected","optionId":"not"}}`},
		{permission, handoff.DecisionStop, `{"outcome":{"outcome":"cancelled"}}`},
		{onlyYes, handoff.DecisionDecline, `{"outcome":{"outcome":"cancelled"}}`},
	} {
		if got := handoff.Encode(test.q.reply(test.d)); got != test.want {
			t.Errorf("%s of %+v is %s, want %s", test.d, test.q, got, test.want)
		}
	}
}

// A deepAgent asks for permission in a message that is too deep to be read. It is its own way and wire.
type deepAgent struct {
	says    chan string
	answers chan string
	gone    chan struct{}
}

func (a *deepAgent) Check(servers.Report, servers.Files)                     {}
func (a *deepAgent) Describe(*servers.Spec)                                  {}
func (a *deepAgent) Open(context.Context, servers.End) (servers.Wire, error) { return a, nil }

func (a *deepAgent) Read() ([]byte, error) {
	select {
	case frame := <-a.says:
		return []byte(frame), nil
	case <-a.gone:
		return nil, io.EOF
	}
}

func (a *deepAgent) Write(frame []byte) error {
	var m jsonrpc.Message
	if err := json.Unmarshal(frame, &m); err != nil {
		return err
	}
	if m.Method == "" {
		a.answers <- string(frame)
		return nil
	}
	deep := strings.Repeat("[", 1000) + strings.Repeat("]", 1000)
	a.says <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1}}`, m.ID)
	a.says <- `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":` + deep + `}}`
	a.says <- `{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"s","toolCall":` + deep + `}}`
	return nil
}

func (a *deepAgent) Close() error { close(a.gone); return nil }

// TestAskedTooDeep: a request that was left out is refused, since the agent waits for its answer.
func TestAskedTooDeep(t *testing.T) {
	t.Parallel()
	a := &deepAgent{says: make(chan string, 8), answers: make(chan string, 8), gone: make(chan struct{})}
	link, err := Dialer(Config{Name: "box", Way: a})(t.Context())
	must(t, err)
	defer link.Conn.Close()
	if got, want := <-a.answers, `{"jsonrpc":"2.0","id":7,"result":{"outcome":{"outcome":"cancelled"}}}`; got != want {
		t.Errorf("it answers %s", got)
	}
}
