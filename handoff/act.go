package handoff

import (
	"slices"
	"strings"
)

// An Act is something that the holder of a grant asks for. What does it asks [Grant.May] first, whichever front the
// request came through: the router for work, the fleet for machines and sessions, the edge for what it keeps itself.
type Act int

// The acts.
const (
	ActNone       Act = iota // what every grant allows
	ActGive                  // give work, add words to it, choose or archive the session in use
	ActGiveNext              // give work that begins after other work
	ActAside                 // ask a side question
	ActWatch                 // follow work that somebody else began
	ActMove                  // order work that waits
	ActStop                  // stop work
	ActDecline               // say no to a question of an agent
	ActAllow                 // say yes outside of calls
	ActAllowSaid             // say yes in a call
	ActRead                  // read the caller's work and the questions of agents
	ActList                  // read and test the machines
	ActSessions              // read which sessions there are
	ActTranscript            // read a session
	ActRename                // rename a session
	ActLevel                 // set how much the caller hears
	ActPersonal              // read, write and delete the conversation, put work away, hear of work of other keys
)

// A need is what a grant needs for an act.
type need struct {
	tools   []string // one of them; nil: none
	approve Approval
	whole   bool // see [Grant.whole]
}

// needs has what every act needs. To give work at once includes to give it in any other way. Set once.
var needs = [...]need{
	ActNone:       {},
	ActGive:       {tools: []string{"codex"}},
	ActGiveNext:   {tools: []string{"queue_next", "codex"}},
	ActAside:      {tools: []string{"run_on_server", "codex"}},
	ActWatch:      {tools: []string{"watch", "codex"}},
	ActMove:       {tools: []string{"queue_next"}},
	ActStop:       {tools: []string{"stop_work"}},
	ActDecline:    {tools: []string{"answer_agent"}},
	ActAllow:      {tools: []string{"answer_agent"}, approve: ApproveAll},
	ActAllowSaid:  {tools: []string{"answer_agent"}, approve: ApproveVoice},
	ActRead:       {tools: []string{"status"}},
	ActList:       {tools: []string{"list_servers"}},
	ActSessions:   {tools: []string{"list_sessions"}},
	ActTranscript: {tools: []string{"read_session"}},
	ActRename:     {tools: []string{"name_session", "codex"}},
	ActLevel:      {tools: []string{"set_updates"}},
	ActPersonal:   {whole: true},
}

// May returns why a grant does not allow an act, or nil: [CodeNotGranted], or [CodeNeedsTap] if only its yes does not
// count.
func (g Grant) May(a Act) error {
	switch n := needs[a]; {
	case n.tools != nil && !slices.ContainsFunc(n.tools, g.AllowsTool):
		return Fault(CodeNotGranted, "it has no tool "+strings.Join(n.tools, " or "), "")
	case n.whole && !g.whole():
		return Fault(CodeNotGranted, "that takes a key with every tool, or a login by a link", "")
	case g.Approve < n.approve:
		return Fault(CodeNeedsTap, WhyNoApprove, "the key says approve: "+g.Approve.String())
	}
	return nil
}

// whole reports whether the grant may use every tool, or is a person's, by a link of whoever runs the service.
func (g Grant) whole() bool { return g.Tools == nil || g.Linked }

// gave reports whether work was given with the same key.
func (g Grant) gave(r Record) bool { return r.Key != "" && r.Key == g.Key }

// Shown reports whether a grant may see the record. Work on a machine that the grant may not use is hidden, unless the
// work never reached a machine. A key that neither reads nor stops work sees what was given with it.
func (r Record) Shown(g Grant) bool {
	return (g.AllowsServer(r.Server) || r.ThreadID == "" && r.Why == "") &&
		(g.gave(r) || g.May(ActRead) == nil || g.May(ActStop) == nil)
}

// Told reports whether a grant may take the outcome for the caller, so that nobody else tells it. A key that is limited
// to some tools takes those of the work that was given with it.
func (r Record) Told(g Grant) bool {
	return r.Shown(g) && (g.gave(r) || g.May(ActPersonal) == nil)
}
