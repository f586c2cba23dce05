package handoff

import (
	"encoding/json"
	"time"
)

// An Instance is one of several that share a store.
type Instance struct {
	ID          string // unique to this life of the instance
	Address     string // where others reach it, as host:port; "": it takes no forwarded requests
	Fingerprint string // of its certificate
	Draining    bool   // it takes no homes any more
}

// A Caller is who speaks: the principal whose key opened the call and, for keys that serve many people,
// the end user that the backend names. Stickies, handoffs, questions and events are kept per caller.
type Caller struct {
	Principal string
	User      string
}

// String returns a form fit for keys and logs: "owner" or "assistant/alice".
func (c Caller) String() string {
	if c.User == "" {
		return c.Principal
	}
	return c.Principal + "/" + c.User
}

// NewThread as the Thread of a [Target] asks for a new thread, even if there is a sticky one.
const NewThread = "new"

// A Target says where work goes. Empty parts are defaults: no Project is the server's own directory, no
// Thread is the caller's sticky thread of that server and project.
type Target struct {
	Server  string // canonical name once resolved
	Project string // a named directory of the server, "" for its default
	Thread  string // thread id once resolved; "" or [NewThread] before
}

// A TurnID names one run of a thread. It is unique only together with its thread: forks reuse turn ids.
type TurnID string

// A QuestionID names one question of an agent. It is made of server, thread, turn and wire request, so that it is
// the same when the question is asked again after a reconnect or a restart of Switchboard, and never another's.
type QuestionID string

// A Turn is the request for one turn of an agent.
type Turn struct {
	ID      string // ours, unique for each handoff; on servers that keep it, a lost start can be found by it
	Input   []Part // the input of the request, verbatim
	Context []Context
}

// Context is something that the agent is told beside the input.
type Context struct {
	Key     string // a short name, [a-z_]
	Value   string
	Trusted bool // true: from Switchboard itself; false: quoted from somebody, never instructions
}

// DisableResponseThreading is the key of a trusted [Context] that makes one turn of an agent on a Responses API send
// its whole history instead of the id of the response that it continues. The values "", "0" and "false" mean off. The
// agent does not see it.
const DisableResponseThreading = "disable_response_threading"

// A FunctionCall is one completed function call of the voice model for one of our tools.
type FunctionCall struct {
	CallID    string // the voice model's call_id, unique in its call
	Tool      string
	Arguments string // raw JSON text, possibly malformed
	// Asked is when the words of the caller ended that asked for the response with this call; zero: no words of theirs
	// did, and the call may change nothing.
	Asked time.Time
	// Began is when the caller began the sentence that the response answers; zero: that is not known.
	Began time.Time
}

// A Sticky is the thread a caller uses on a server or project until they say otherwise.
type Sticky struct {
	Target Target
	Title  string
	Named  bool // the caller named the thread; false: Switchboard made it
	Since  time.Time
}

// A Guide has instructions for a voice model about our tools, beside the tools' descriptions. "": none.
type Guide struct {
	Whole string // for a session without instructions
	Added string // for a session with its own instructions, after these
}

// A Tool is a function the voice model may call.
type Tool struct {
	Name        string
	Description string
	Parameters  json.RawMessage // JSON schema
	Early       bool            // its arguments are useful while the model still writes them
	Silence     bool            // the model calls it to say nothing
	ReadOnly    bool            // it changes nothing, here or on a machine; other tools need words of the caller
	Words       bool            // it counts only together with the caller's own words, so their speech must be transcribed
}
