package handoff

import (
	"context"
	"time"
)

// Directory lists servers and sessions: the same JSON for the voice model's tools and for the page.
type Directory interface {
	Servers(ctx context.Context, g Grant) []ServerInfo
	// Sessions lists the sessions of all servers, newest first, those that programs made after all others. A server
	// that does not answer in time is named in Errors, and its sessions are those of its last answer.
	Sessions(ctx context.Context, g Grant, q SessionQuery) (SessionList, error)
	// Read returns the newest turns of one session, oldest first.
	Read(ctx context.Context, g Grant, t Target, limit int) (Transcript, error)
}

// SessionQuery narrows a list of sessions. Zero values mean everything; Limit is at most 40.
type SessionQuery struct {
	Server string
	// Text has words to find in titles, labels, directories and branches, in any case. If no session has all of them,
	// sessions are found whose words sound similar.
	Text  string
	Limit int
	Skip  int `json:",omitempty"` // number of sessions to leave out: those of the pages before
}

// Health says whether a server can be used.
type Health string

// The healths.
const (
	HealthUp         Health = "up"
	HealthConnecting Health = "connecting"
	HealthDown       Health = "down"
)

// ServerInfo describes one server of the fleet.
type ServerInfo struct {
	Name      string   `json:"name"`
	Aliases   []string `json:"aliases,omitempty"`
	Kind      string   `json:"kind"`
	Health    Health   `json:"health"`
	Reason    Reason   `json:"reason,omitempty"`  // why it cannot be used; "": it can, or the reason is not known
	Problem   string   `json:"problem,omitempty"` // Reason in words
	Next      string   `json:"next,omitempty"`    // the one thing to do about it
	Projects  []string `json:"projects,omitempty"`
	Simulated bool     `json:"simulated,omitempty"`
	Watchable bool     `json:"watchable,omitempty"` // what others begin there shows, and may be watched
	Worktrees bool     `json:"worktrees,omitempty"` // new sessions there can have worktrees of their own
	Version   string   `json:"version,omitempty"`
	Note      string   `json:"note,omitempty"`    // what its agents may do, in a sentence
	Working   []string `json:"working,omitempty"` // titles of sessions that run a turn now
	WatchAll  bool     `json:"-"`                 // all that others begin there is watched, for the owner
	// AskedThere are questions of work that other programs began. They are answered there, never here.
	AskedThere []AskedThere `json:"asked_there,omitempty"`
}

// AskedThere is a question of work that another program began.
type AskedThere struct {
	Thread string `json:"thread_id"`
	Title  string `json:"title"`
	Text   string `json:"text"` // the command, or the question in words
}

// SessionStatus is the status of a session.
type SessionStatus string

// The statuses. Unknown means that the server has the session only on disk.
const (
	SessionIdle    SessionStatus = "idle"
	SessionRunning SessionStatus = "running"
	SessionWaiting SessionStatus = "waiting" // for an approval or an answer
	SessionUnknown SessionStatus = "unknown"
)

// SessionInfo describes one thread, called a session where people see it.
type SessionInfo struct {
	ID        string        `json:"id"`
	Label     string        `json:"label"` // a short name that can be said and passed as thread_id
	Title     string        `json:"title"`
	Server    string        `json:"server"`
	Directory string        `json:"directory,omitempty"`
	Branch    string        `json:"branch,omitempty"`
	Created   time.Time     `json:"created,omitzero"`
	Updated   time.Time     `json:"updated"`
	Age       string        `json:"age"` // "5 minutes ago"
	Status    SessionStatus `json:"status"`
	API       bool          `json:"api,omitempty"` // a program made it with /v1/responses
	Worktree  *Worktree     `json:"worktree,omitempty"`
}

// ServerProblem is the error of a server that did not answer.
type ServerProblem struct {
	Server  string `json:"server"`
	Code    Code   `json:"code"`
	Message string `json:"message"`
}

// SessionList is a page of sessions. More is the number of sessions after it.
type SessionList struct {
	Items  []SessionInfo   `json:"items"`
	More   int             `json:"more,omitempty"`
	Errors []ServerProblem `json:"errors,omitempty"`
}

// A Line is one readable entry of a session.
type Line struct {
	Role string `json:"role"` // user, agent, command, edit, tool, plan
	Text string `json:"text"`
}

// Transcript is the newest part of a session, oldest line first. More is the number of lines before it.
type Transcript struct {
	Server string        `json:"server"`
	ID     string        `json:"id"`
	Title  string        `json:"title"`
	Status SessionStatus `json:"status"`
	Lines  []Line        `json:"lines"`
	More   int           `json:"more,omitempty"`
}

// A Machine has the details of a server for its owner, beside [ServerInfo]. An empty setting is the server's own
// default, or not known.
type Machine struct {
	Name string `json:"name"`
	// Address is its network address, or the command that is run as a child, without secrets.
	Address        string    `json:"address,omitempty"`
	Start          string    `json:"start,omitempty"`     // the command that starts its agent server, to be typed there
	Directory      string    `json:"directory,omitempty"` // of new sessions
	Model          string    `json:"model,omitempty"`     // of new sessions
	Sandbox        string    `json:"sandbox,omitempty"`   // of new sessions
	Approval       string    `json:"approval,omitempty"`  // of new sessions
	Ceiling        string    `json:"ceiling,omitempty"`   // the loosest sandbox that may run
	VoiceApprovals string    `json:"voice_approvals"`     // the riskiest that may be allowed by voice: none, low or medium
	Archives       bool      `json:"archives,omitempty"`  // sessions can be archived there; known while it is up
	Renames        bool      `json:"renames,omitempty"`   // sessions can be renamed there; known while it is up
	Seen           time.Time `json:"seen,omitzero"`       // when it was last up; now while it is up
	NextTry        time.Time `json:"next_try,omitzero"`   // while it is down: when the next attempt to connect is made

	// Joined is when its machine joined by itself; zero: it is configured. Only such a machine has the fields below.
	Joined   time.Time `json:"joined,omitzero"`
	Machine  string    `json:"machine,omitempty"` // its name; each of its agents is a server
	System   string    `json:"system,omitempty"`  // such as linux/amd64
	Program  string    `json:"program,omitempty"` // the version of Switchboard there
	DiskFree int64     `json:"disk_free,omitempty"`
	Battery  int       `json:"battery,omitempty"` // percent; 0: it has none
	Charging bool      `json:"charging,omitempty"`
	NoYes    bool      `json:"no_yes,omitempty"` // questions of its agents are answered only there, by its owner
}
