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

// Work is the work of the agents. The error for an unknown id, and for one of another caller, has code
// [handoff.CodeNotFound].
type Work interface {
	// Handoffs returns a caller's work, newest first. With an error the list may be incomplete.
	Handoffs(g handoff.Grant) ([]handoff.Record, error)
	Handoff(g handoff.Grant, id string) (handoff.Record, error)
	Stop(ctx context.Context, g handoff.Grant, id string) error
}

// Outbox has the outcomes that the next call tells. HeardForGood takes one out, durably. Answered notes that who asked
// for work has the answer to that request.
type Outbox interface {
	HeardForGood(ctx context.Context, g handoff.Grant, id handoff.RunID) error
	Answered(g handoff.Grant, id handoff.RunID)
}

// Past has a caller's work from before a restart. After Recall, [Work] lists it, too.
type Past interface {
	Recall(ctx context.Context, c handoff.Caller) error
	// Past returns a piece of work by its id in the history, and false if there is none.
	Past(ctx context.Context, g handoff.Grant, id string) (handoff.Record, bool, error)
}

// Questions has the open questions of agents. The error for answering one that is answered, withdrawn or another
// caller's has code [handoff.CodeNotPending].
type Questions interface {
	Questions(g handoff.Grant) []handoff.RecordQuestion
	Decide(ctx context.Context, g handoff.Grant, id handoff.QuestionID, d handoff.Decision) error
	Reply(ctx context.Context, g handoff.Grant, id handoff.QuestionID, words string) error
}

// Stickies has the session in use on each server. A server is "bigpc", or "bigpc/api" for a project.
type Stickies interface {
	Stickies(ctx context.Context, g handoff.Grant) ([]handoff.RecordSticky, error)
	ClearSticky(ctx context.Context, g handoff.Grant, server string) error
	PutSticky(ctx context.Context, g handoff.Grant, server, thread, title string) error
}

// Machines describes and tests the servers, and manages the sessions there.
type Machines interface {
	Machines(g handoff.Grant) []handoff.Machine
	Test(ctx context.Context, g handoff.Grant, server string) (took time.Duration, err error)
	Shelf
}

// Shelf archives and renames sessions.
type Shelf interface {
	Archive(ctx context.Context, g handoff.Grant, t handoff.Target, on bool) error
	RenameSession(ctx context.Context, g handoff.Grant, t handoff.Target, name string) error
}

// Levels has how much each caller hears of running work.
type Levels interface {
	Level(ctx context.Context, c handoff.Caller) handoff.SpeechLevel
	SetLevel(ctx context.Context, c handoff.Caller, level handoff.SpeechLevel) error
}

// Decisions reads a caller's decisions from the audit, newest first.
type Decisions interface {
	Decisions(c handoff.Caller, limit int) ([]handoff.AuditRecord, error)
}

// Feeds returns the feed of a caller. It is the same feed as long as the caller has open work, calls or streams, and
// for a short time after; a later feed continues with higher ids.
type Feeds interface {
	Feed(g handoff.Grant) *handoff.Feed
}

// Front is the voice front. The request it gets has passed every check; the body of a call is in memory.
type Front interface {
	ServeWebSocket(w http.ResponseWriter, r *http.Request, g handoff.Grant)
	ServeCalls(w http.ResponseWriter, r *http.Request, g handoff.Grant)
	Hangup(g handoff.Grant, id string) error
}

// Calls lists the open calls of a caller, oldest first, and attaches to a call of the voice model's server. Say adds
// text that was typed on the page, as an item with an id, to a call whose sound goes directly to the voice model's
// server.
type Calls interface {
	Calls(g handoff.Grant) []handoff.CallInfo
	ServeAttach(w http.ResponseWriter, r *http.Request, g handoff.Grant, id string)
	Say(ctx context.Context, g handoff.Grant, id, item, text string) error
}

// Router is the source of work, its outcomes and the questions of agents.
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

// Store persists what the page shows, and logins, codes, secrets and apps.
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

// Mounted is a front with routes of its own behind the edge's checks, such as OpenAI's Responses API. The body of each
// request is in memory. If its key is revoked meanwhile, the request's context ends with a cause of code
// [handoff.CodeUnauthorized].
type Mounted interface {
	Patterns() []string // of its routes
	Serve(w http.ResponseWriter, r *http.Request, g handoff.Grant) error
	Close() // ends its streams
}

// A Chip is a sentence that the page offers to a newcomer.
type Chip struct {
	Text string `json:"text"`           // sent when the chip is pressed
	Hint string `json:"hint,omitempty"` // what the sentence demonstrates, in a few words
}

// VoiceInfo is what the page shows about the voice model.
type VoiceInfo struct {
	Simulated bool   `json:"simulated"`
	Model     string `json:"model"`
	Host      string `json:"host,omitempty"` // of its server
	Chips     []Chip `json:"chips"`

	Language string `json:"language,omitempty"` // code of the language that the voice speaks; "": the caller's

	Prices *Prices `json:"prices,omitempty"` // nil: they are unknown, or the model costs nothing
}

// Prices are those of a voice model, in US dollars for a million tokens. The cached ones are for input that it had
// before.
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
	// MachineLog returns the newest lines of the log that name a machine, oldest first. Nil: none.
	MachineLog func(machine string) []LogLine
	// Line serves the line of a machine that joined. from is the address of the request, or the zero address; known is
	// called when the machine has proved who it is.
	Line func(w http.ResponseWriter, r *http.Request, from netip.Addr, known func()) error
	// Owner is the principal who invites machines, and Address the URL that invitations from inside name.
	Owner     string
	Address   func() string
	Responses Mounted // may be nil
	MCP       Mounted // may be nil
	OAuth     OAuth   // nil: no program elsewhere gets access
	Peers     Peers   // nil for a single instance
	// Instances returns the living instances, including this one. Nil for a single instance.
	Instances func() []InstanceInfo
	// MCPPipe serves MCP to a program on this machine, one message in each line, until the program closes the
	// connection or ctx ends.
	MCPPipe func(ctx context.Context, conn io.ReadWriteCloser, g handoff.Grant) error

	// Keys has at least one entry. A key with a zero Sum matches no text: its principal logs in with links.
	Keys []Key
	// Listen is the address of the listener, as host:port.
	Listen string
	// PublicURL is another address of the page (scheme and host), such as that of a proxy before it. Optional.
	PublicURL string
	// TrustedProxies, if it is not empty, has the only networks besides loopback that may connect.
	TrustedProxies []netip.Prefix
	Voice          VoiceInfo
	// Metrics answers GET /metrics for a grant that may read metrics. May be nil.
	Metrics http.Handler
	// Ready returns why the service cannot take work now. Nil: it always can.
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
		mux: http.NewServeMux(), known: map[string]route{},
		requests: openRequests{of: map[handoff.Caller]map[*openRequest]struct{}{}},
	}
	s.auth.codes.store = cfg.Store
	s.auth.logins, s.auth.secrets, s.auth.access, s.auth.log = cfg.Store, cfg.Store, access, cfg.Log
	s.SetKeys(cfg.Keys)
	s.refused = handoff.NewTally(slices.Collect(maps.Keys(handoff.Vocabulary))...)
	s.streams = &streams{
		router: cfg.Router, times: &s.times, closed: s.closed,
		life: rand.Text()[:8], open: map[streamShare]int{},
	}
	s.secrets = &clientSecrets{auth: &s.auth, store: cfg.Store, model: cfg.Voice.Model}
	s.routes(cfg)
	return s, nil
}

// newAccessPolicy returns the access policy for the addresses of a configuration.
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
