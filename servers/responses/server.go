package responses

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"switchboard/handoff"
	"switchboard/handoff/threads"
	"switchboard/servers"
	"switchboard/servers/responses/wire"
	"switchboard/servers/responses/workspace"
)

// Config configures one agent.
type Config struct {
	Name       string // of the server; it owns its threads
	URL        string // of the API, such as https://api.openai.com/v1
	Token      func() (string, error)
	Client     *http.Client // for the API; nil is [HTTP]
	Model      Model
	Iterations int // how many answers of one turn may call tools; 0 is 40
	Threads    threads.Store
	Workspace  tools
	Dir        string // the directory of the workspace, as threads show it
	Note       string // what the agent may do there, in a sentence
	Log        *zap.Logger
}

// A Server is one agent with its turns. The turns run in [Server.Run], also while nobody is connected.
type Server struct {
	// Set once, like all up to count.
	cfg       Config
	upstream  *upstream
	tools     []tool        // of the workspace
	asides    asides        // cfg.Threads
	threading bool          // whether requests may name responses
	ready     chan struct{} // closed once turns may begin
	starting  chan struct{} // capacity 1: a lock that is held while a turn is claimed
	count     counts

	mu      sync.Mutex
	base    context.Context // Guarded by mu: parent context of turns; nil while none may begin
	work    *sync.WaitGroup // Guarded by mu: counts the turns
	runs    map[string]*run // Guarded by mu: by thread
	allowed handoff.IDSet   // Guarded by mu: acts that were allowed for a session

	// Guarded by mu: turns whose start is under way or for which the store did not answer, until the start is tried
	// again or reconciled.
	starts map[handoff.TurnID]*run
}

// counts are the counters of a server.
type counts struct {
	turns, forgotten, compacted atomic.Uint64
}

// newServer returns a server. Its turns begin once [Server.Run] runs.
func newServer(cfg Config) *Server {
	cfg.Iterations = cmp.Or(cfg.Iterations, defaultIterations)
	store := asides{cfg.Threads, threads.NewMemory(), cfg.Name}
	cfg.Threads = store
	s := &Server{
		cfg: cfg, asides: store, upstream: newUpstream(cfg.URL, cfg.Token, cfg.Client),
		threading: !threadingDisabled(), ready: make(chan struct{}), runs: map[string]*run{},
		starting: make(chan struct{}, 1), starts: map[handoff.TurnID]*run{},
	}
	for _, t := range cfg.Workspace.Tools() {
		s.tools = append(s.tools, tool{true, t.Parameters, t.Name, t.Description, "function"})
	}
	return s
}

// Run lets turns run until ctx ends. Then it interrupts them, and returns when all have ended and their ends are
// stored. It is called once.
func (s *Server) Run(ctx context.Context) error {
	base, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	var work sync.WaitGroup
	s.mu.Lock()
	s.base, s.work = base, &work
	s.mu.Unlock()
	close(s.ready)
	<-ctx.Done()
	s.mu.Lock()
	s.base = nil // no turn begins any more
	s.mu.Unlock()
	cancel(errShutdown)
	work.Wait()
	return nil
}

// Dial connects to the agent once its turns may begin. It sends nothing: a turn will show whether the model answers.
func (s *Server) Dial(ctx context.Context) (*servers.Link, error) {
	select {
	case <-s.ready:
	case <-ctx.Done():
		return nil, handoff.Fault(handoff.CodeUnreachable, s.cfg.Name, "it does not run yet")
	}
	c := &conn{server: s, id: newID("conn"), done: make(chan struct{})}
	return &servers.Link{Conn: c, Catalog: c, Done: c.done, Note: s.cfg.Note}, nil
}

// Metrics yields the counters of the server.
func (s *Server) Metrics(yield func(handoff.Metric) bool) {
	for _, m := range []struct {
		name, help string
		value      uint64
	}{
		{"switchboard_responses_turns_total", "Turns begun by an agent that Switchboard runs itself.", s.count.turns.Load()},
		{"switchboard_responses_forgotten_total",
			"Responses that their server did not know any more, so that everything was sent again.", s.count.forgotten.Load()},
		{"switchboard_responses_compacted_total", "Threads that were compacted because their model's context was full.",
			s.count.compacted.Load()},
	} {
		if !yield(handoff.NewMetric(m.name, m.help, m.value, "server", s.cfg.Name)) {
			return
		}
	}
}

// advance makes a step, within writeTime. While it is uncertain whether the step was written, it tries again.
func (s *Server) advance(ctx context.Context, step threads.Step) (threads.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	for try := 1; ; try++ {
		r, err := s.cfg.Threads.Advance(ctx, step)
		if !unsure(err) || try == stepTries || ctx.Err() != nil {
			return r, err
		}
		select {
		case <-time.After(stepPauses.Pause(try)):
		case <-ctx.Done():
			return r, err
		}
	}
}

// unsure reports whether a step with this error may have been written.
func unsure(err error) bool {
	return err != nil && handoff.AsError(err).Code == handoff.CodeUnreachable
}

// begin starts a turn, or finds that it was started before: the id of a turn is made of its thread and of the id that
// the caller gave it. started is called before a new turn publishes anything.
func (s *Server) begin(
	ctx context.Context, thread string, turn handoff.Turn, started func(*run),
) (handoff.TurnID, error) {
	id := turnID(thread, turn.ID)
	return id, s.start(ctx, &run{
		server: s, thread: thread, id: id, turn: turn, key: newID("claim"),
		threading: s.threading && !optedOut(turn) && !isAside(thread),
		hub:       newHub(id), inbox: newInbox(), done: make(chan struct{}),
	}, started)
}

// start claims the thread for a turn, and lets the turn run. After [handoff.CodeUnknownStart] it may be tried again,
// and the turn runs once.
func (s *Server) start(ctx context.Context, r *run, started func(*run)) error {
	select {
	case s.starting <- struct{}{}:
		defer func() { <-s.starting }()
	case <-ctx.Done():
		if s.unsureStart(r.id) == nil { // it has only waited behind others
			return handoff.Fault(handoff.CodeUnreachable, s.cfg.Name, "others are being started")
		}
		return handoff.Fault(handoff.CodeUnknownStart, s.cfg.Name, "it is being started")
	}
	s.mu.Lock()
	base, work := s.base, s.work
	if u := s.starts[r.id]; u != nil {
		r = u
	}
	if base != nil {
		work.Add(1)
		s.starts[r.id] = r
	}
	s.mu.Unlock()
	var claimed bool
	var err error = handoff.Fault(handoff.CodeUnreachable, s.cfg.Name, "it does not run")
	if base != nil {
		defer work.Done()
		claimed, err = s.claim(ctx, r)
	}
	if claimed {
		ctx, r.stop = context.WithCancelCause(handoff.WithSpan(base, handoff.SpanOf(ctx)))
	}
	s.mu.Lock()
	delete(s.starts, r.id)
	if handoff.CodeOf(err) == handoff.CodeUnknownStart && len(s.starts) < maxUnsure {
		s.starts[r.id] = r
	}
	if claimed {
		s.runs[r.thread] = r
	}
	s.mu.Unlock()
	if claimed {
		s.count.turns.Add(1)
		started(r)
		work.Go(func() { r.main(ctx) })
	}
	return err
}

// optedOut reports whether a turn wants its whole history sent.
func optedOut(turn handoff.Turn) bool {
	for _, c := range turn.Context {
		if c.Trusted && c.Key == handoff.DisableResponseThreading {
			return c.Value != "" && c.Value != "0" && c.Value != "false"
		}
	}
	return false
}

// claim stores the beginning of a turn and reads its history. It returns false if the turn was begun before.
func (s *Server) claim(ctx context.Context, r *run) (bool, error) {
	if r.fence > 0 {
		return false, nil
	}
	claim := threads.Claim{
		Owner: s.cfg.Name, Thread: r.thread, Turn: string(r.id), Key: r.key, Items: turnItems(r.turn), At: time.Now(),
		Title: handoff.ClipRunes(strings.Join(strings.Fields(handoff.InputText(r.turn.Input)), " "), 80),
	}
	c, err := s.advance(context.WithoutCancel(ctx), claim)
	if handoff.CodeOf(err) == handoff.CodeBusy { // perhaps with a turn that was lost
		record, unread := s.cfg.Threads.Read(ctx, s.cfg.Name, r.thread)
		if unread == nil && s.giveUp(record.Thread) {
			claim.Lost = record.Thread.Active
			c, err = s.advance(context.WithoutCancel(ctx), claim)
		}
	}
	// c.Same is no proof: advance may have tried twice. A turn that was claimed long ago may be lost by now.
	ours := err == nil && c.Turn.Claim == r.key && c.Turn.Status == threads.Running
	if err != nil && !unsure(err) || err == nil && !ours {
		return false, err
	}
	var record threads.Record
	if err == nil {
		record, err = s.cfg.Threads.Read(ctx, s.cfg.Name, r.thread)
	}
	if err != nil { // it may be claimed
		s.cfg.Log.Warn("a turn could not be begun", zap.Error(err))
		return false, handoff.Because(handoff.CodeUnknownStart, s.cfg.Name, err)
	}
	r.fence, r.items, r.anchor = c.Turn.Fence, record.Items, c.Turn.Anchor
	return true, nil
}

// active returns the turn of a thread that runs, or whose start is under way or uncertain; "": there is none. Nobody
// else runs turns of this agent over its store: one that has not ended there and is not known here was lost.
func (s *Server) active(t threads.Thread) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := handoff.TurnID(t.Active)
	if r := s.runs[t.ID]; s.starts[id] != nil || r != nil && r.id == id {
		return t.Active
	}
	return ""
}

// giveUp reports whether the active turn of a thread does not run, so that the one that starts may take its place. If
// its start is uncertain, it counts as lost from now on: a claim with its key may be there, and is not ours any more.
// The caller holds starting.
func (s *Server) giveUp(t threads.Thread) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := handoff.TurnID(t.Active)
	if u := s.starts[id]; u != nil {
		u.key = newID("claim")
		delete(s.starts, id)
	}
	r := s.runs[t.ID]
	return r == nil || r.id != id
}

// unsureStart returns a turn that was perhaps claimed, nil for none.
func (s *Server) unsureStart(id handoff.TurnID) *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.starts[id]
}

// running returns the run of a thread, nil for none.
func (s *Server) running(thread string) *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[thread]
}

// allow remembers that an act was allowed for the session.
func (s *Server) allow(act string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.allowed.Add(act)
}

// allowedBefore reports whether an act was allowed for its session.
func (s *Server) allowedBefore(act string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.allowed.Known(act)
}

// forget removes a run that has ended.
func (s *Server) forget(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs[r.thread] == r {
		delete(s.runs, r.thread)
	}
	if r.detached {
		s.asides.memory.Drop(r.thread)
	}
}

// newID returns an id that nobody can guess.
func newID(kind string) string { return kind + "_" + strings.ToLower(rand.Text()) }

// turnID returns the id of a turn: the same for the same thread and id, a new one for id "".
func turnID(thread, id string) handoff.TurnID {
	if id == "" {
		return handoff.TurnID(newID("turn"))
	}
	sum := sha256.Sum256([]byte(thread + "\x00" + id))
	return handoff.TurnID("turn_" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:26]))
}

// questionID returns the id of a question, the same on every connection.
func questionID(server, thread string, turn handoff.TurnID, call string) handoff.QuestionID {
	sum := sha256.Sum256(wire.Encode([]string{server, thread, string(turn), call}))
	return handoff.QuestionID("q_" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:26]))
}

var _ tools = (*workspace.Workspace)(nil)
