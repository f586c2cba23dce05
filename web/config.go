package web

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/sessions"
)

// Work is what was asked of the agents. An unknown id, and one of another caller, is [handoff.CodeNotFound].
type Work interface {
	// Handoffs returns a caller's work, newest first. With an error it returns what is known, and there may be more.
	Handoffs(g handoff.Grant) ([]handoff.Record, error)
	Handoff(g handoff.Grant, id string) (handoff.Record, error)
	Stop(ctx context.Context, g handoff.Grant, id string) error
}

// Outbox holds outcomes that nobody was told yet: the next call tells them. What was heard stays heard after a kill.
type Outbox interface {
	HeardForGood(ctx context.Context, c handoff.Caller, id handoff.RunID) error
}

// Past is a caller's work from before a restart. After Recall, [Work] lists it too.
type Past interface {
	Recall(ctx context.Context, c handoff.Caller) error
	// Past gives what was asked, answered and done, and where, by its id in the history; false: there is none.
	Past(ctx context.Context, c handoff.Caller, id string) (handoff.Record, bool, error)
}

// Questions is what agents wait for. Answering one that is answered, withdrawn or foreign is
// [handoff.CodeNotPending].
type Questions interface {
	Questions(g handoff.Grant) []handoff.RecordQuestion
	Decide(ctx context.Context, g handoff.Grant, id handoff.QuestionID, d handoff.Decision) error
	Reply(ctx context.Context, g handoff.Grant, id handoff.QuestionID, words string) error
}

// Stickies is which session is used where. A server is written "bigpc", or "bigpc/api" for a project.
type Stickies interface {
	Stickies(ctx context.Context, g handoff.Grant) ([]handoff.RecordSticky, error)
	ClearSticky(ctx context.Context, g handoff.Grant, server string) error
	PutSticky(ctx context.Context, g handoff.Grant, server, thread, title string) error
}

// Machines is what people look after: how each server is reached, whether it answers now, and which sessions are put
// away there.
type Machines interface {
	Machines(g handoff.Grant) []handoff.Machine
	Test(ctx context.Context, g handoff.Grant, server string) (took time.Duration, err error)
	Shelf
}

// Shelf puts sessions away, and gives them names.
type Shelf interface {
	Archive(ctx context.Context, g handoff.Grant, t handoff.Target, on bool) error
	RenameSession(ctx context.Context, g handoff.Grant, t handoff.Target, name string) error
}

// Levels keeps how much a caller is told about running work.
type Levels interface {
	Level(ctx context.Context, c handoff.Caller) handoff.SpeechLevel
	SetLevel(ctx context.Context, c handoff.Caller, level handoff.SpeechLevel) error
}

// Decisions reads what was decided from the audit, the newest first.
type Decisions interface {
	Decisions(c handoff.Caller, limit int) ([]handoff.AuditRecord, error)
}

// Feeds gives each caller's feed: the same one for the same caller as long as something of theirs is open, or was a
// short time ago. A later one goes on with higher ids.
type Feeds interface {
	Feed(g handoff.Grant) *handoff.Feed
}

// Front is the voice front. The request it gets has passed every check; the body of a call is in memory.
type Front interface {
	ServeWebSocket(w http.ResponseWriter, r *http.Request, g handoff.Grant)
	ServeCalls(w http.ResponseWriter, r *http.Request, g handoff.Grant)
	Hangup(g handoff.Grant, id string) error
}

// Calls lists the calls of a caller that live, oldest first, joins one that the voice model's server carries, and takes
// what is typed in one of the page whose sound does not go through here, as the item with an id.
type Calls interface {
	Calls(g handoff.Grant) []handoff.CallInfo
	ServeAttach(w http.ResponseWriter, r *http.Request, g handoff.Grant, id string)
	Say(ctx context.Context, g handoff.Grant, id, item, text string) error
}

// Router is where work, its outcomes and the questions of agents come from.
type Router interface {
	Work
	Past
	Runs
	Queue
	Outbox
	Feeds
	Questions
	Stickies
	Rates
}

// Store is what remembers: what the page shows of other days, and who may come in.
type Store interface {
	sessions.Documents
	sessions.Conversations
	History
	Logins
	LoginList
	sessions.Codes
	Secrets
	AppList
}

// Fleet is the machines and the sessions on them.
type Fleet interface {
	handoff.Directory
	Machines
}

// Mounted is a front that serves routes of its own behind the edge's checks, such as OpenAI's Responses API. The body
// of the request it gets is in memory. When the request's key is revoked meanwhile its context ends, with an error of
// code [handoff.CodeUnauthorized] as the cause.
type Mounted interface {
	Patterns() []string // of its routes
	Serve(w http.ResponseWriter, r *http.Request, g handoff.Grant) error
	Close() // ends its streams
}

// A Chip is a sentence that the page offers to a newcomer.
type Chip struct {
	Text string `json:"text"`           // what is sent when it is pressed
	Hint string `json:"hint,omitempty"` // what it shows, in a few words
}

// VoiceInfo is what the page tells about the voice model.
type VoiceInfo struct {
	Simulated bool   `json:"simulated"`
	Model     string `json:"model"`
	Host      string `json:"host,omitempty"` // of its server
	Chips     []Chip `json:"chips"`

	Language string `json:"language,omitempty"` // that the voice speaks, as a code; "": the caller's

	Prices *Prices `json:"prices,omitempty"` // nil: unknown, or there are none
}

// Prices are what a voice model costs, in US dollars for a million tokens. Cached is what it was given before.
type Prices struct {
	TextIn      float64 `json:"text_in"`
	TextCached  float64 `json:"text_cached"`
	TextOut     float64 `json:"text_out"`
	AudioIn     float64 `json:"audio_in"`
	AudioCached float64 `json:"audio_cached"`
	AudioOut    float64 `json:"audio_out"`
	ImageIn     float64 `json:"image_in"`
	ImageCached float64 `json:"image_cached"`
}

// Config is what a [Server] is made of.
type Config struct {
	Router    Router
	Store     Store
	Fleet     Fleet
	Front     Front
	Calls     Calls
	Levels    Levels
	Decisions Decisions
	Push      Push
	Joining   Joining
	Reload    func(context.Context) (Reloaded, error) // reads the settings again
	// Line takes the line of a machine; known is called once that has proved who it is.
	Line func(w http.ResponseWriter, r *http.Request, known func()) error
	// Owner is the principal who lets machines in, and Address is where they come: what whoever is inside is told.
	Owner     string
	Address   func() string
	Responses Mounted // nil: there is none
	MCP       Mounted // nil: there is none
	OAuth     OAuth   // nil: there is none, and no document of it
	Peers     Peers   // nil: this is the only instance
	// Instances returns the instances that live, this one among them. Nil: this is the only one.
	Instances func() []InstanceInfo
	// MCPPipe serves MCP to a program on this machine, a message a line, until it closes the connection or ctx ends.
	MCPPipe func(ctx context.Context, conn io.ReadWriteCloser, g handoff.Grant) error

	// Keys has at least one entry. One with a zero Sum has no text that anybody could send: its principal logs in by
	// link.
	Keys []Key
	// Listen is the address really listened on, as host:port.
	Listen string
	// PublicURL is one more address of the page (scheme and host), e.g. of a proxy before it. Optional.
	PublicURL string
	// TrustedProxies: when set, only these and loopback may connect.
	TrustedProxies []netip.Prefix
	Voice          VoiceInfo
	// Metrics answers GET /metrics for a grant that may read them. Nil: there are none.
	Metrics http.Handler
	// Ready says why calls cannot be taken now. Nil: always ready.
	Ready func(context.Context) error
	// Trace traces requests that give work.
	Trace handoff.Tracer
	Log   *zap.Logger // nil: silent
}

// New checks the configuration and returns a server; it starts nothing.
func New(cfg Config) (*Server, error) {
	for name, part := range map[string]any{
		"Router": cfg.Router, "Store": cfg.Store, "Fleet": cfg.Fleet, "Front": cfg.Front, "Calls": cfg.Calls,
		"Levels": cfg.Levels, "Decisions": cfg.Decisions, "Push": cfg.Push, "Joining": cfg.Joining,
	} {
		if part == nil {
			return nil, fmt.Errorf("web: the configuration has no %s", name)
		}
	}
	if len(cfg.Keys) == 0 {
		return nil, errors.New("web: no key; whoever may connect must hold one")
	}
	access, err := newAccessPolicy(cfg)
	if err != nil {
		return nil, err
	}
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	s := &Server{
		access: access, times: usual, bodies: newBodies(), rates: cfg.Router, scrape: cfg.Metrics,
		peers: cfg.Peers, ready: cfg.Ready, trace: cfg.Trace, log: cfg.Log, closed: make(chan struct{}),
		mux: http.NewServeMux(), known: map[string]route{}, guests: guests{of: map[handoff.Caller]map[*guest]struct{}{}},
	}
	s.auth.codes.store = cfg.Store
	s.auth.logins, s.auth.secrets, s.auth.access, s.auth.log = cfg.Store, cfg.Store, access, cfg.Log
	s.SetKeys(cfg.Keys)
	s.refused = handoff.NewTally(slices.Collect(maps.Keys(handoff.Vocabulary))...)
	s.streams = &streams{
		router: cfg.Router, auth: &s.auth, times: &s.times, closed: s.closed,
		life: rand.Text()[:8], open: map[handoff.Caller]int{},
	}
	s.secrets = &clientSecrets{auth: &s.auth, store: cfg.Store, model: cfg.Voice.Model}
	s.routes(cfg)
	return s, nil
}

// newAccessPolicy reads the addresses that people may use.
func newAccessPolicy(cfg Config) (accessPolicy, error) {
	host, port, err := net.SplitHostPort(cfg.Listen)
	if err != nil {
		return accessPolicy{}, fmt.Errorf("web: listen address %q: %w", cfg.Listen, err)
	}
	d := accessPolicy{host: host, port: port, proxies: cfg.TrustedProxies}
	if addr, err := netip.ParseAddr(host); err == nil && addr.IsUnspecified() {
		d.host = ""
	}
	if cfg.PublicURL != "" {
		u, err := url.Parse(cfg.PublicURL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return accessPolicy{}, fmt.Errorf("web: public_url %q is not an http or https address", cfg.PublicURL)
		}
		d.publicScheme, d.publicHost = u.Scheme, canonicalHost(u.Host, u.Scheme)
	}
	return d, nil
}
