package router

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"switchboard/handoff"
	"switchboard/handoff/work"
)

// unknowing is a fleet in which no name is known.
type unknowing struct{ handoff.Fleet }

func (unknowing) Resolve(context.Context, handoff.Grant, handoff.Target) (handoff.Target, error) {
	return handoff.Target{}, handoff.Fault(handoff.CodeUnknownServer, "", "")
}

// prompt returns a malformed request, which has no words.
func prompt(mode handoff.Mode) handoff.Request { return handoff.Request{Mode: mode} }

// acts are what a grant can ask of a router. "mine" was given with the key of the grant, "theirs" with another one.
var acts = map[string]struct {
	needs string // tools, of which one is enough; "": a key without a limit
	do    func(context.Context, *Router, handoff.Grant) error
}{
	"give": {"codex", func(ctx context.Context, r *Router, g handoff.Grant) error {
		_, err := r.Start(ctx, g, prompt(handoff.ModeNow))
		return err
	}},
	"give, and wait": {"codex", func(ctx context.Context, r *Router, g handoff.Grant) error {
		_, err := r.Give(ctx, g, prompt(handoff.ModeNow))
		return err
	}},
	"give next": {"queue_next codex", func(ctx context.Context, r *Router, g handoff.Grant) error {
		_, err := r.Start(ctx, g, prompt(handoff.ModeNext))
		return err
	}},
	"ask aside": {"run_on_server codex", func(ctx context.Context, r *Router, g handoff.Grant) error {
		_, err := r.Start(ctx, g, prompt(handoff.ModeAside))
		return err
	}},
	"go on from another session": {"read_session", func(ctx context.Context, r *Router, g handoff.Grant) error {
		_, err := r.Start(ctx, g, handoff.Request{From: handoff.Target{Server: "laptop"}})
		return err
	}},
	"begin what is paused": {"codex", func(ctx context.Context, r *Router, g handoff.Grant) error {
		_, err := r.Start(ctx, g, handoff.Request{Mode: handoff.ModeNext, Instead: "paused"})
		return err
	}},
	"steer": {"codex", func(ctx context.Context, r *Router, g handoff.Grant) error {
		_, err := r.Steer(ctx, g, "mine", prompt(handoff.ModeNow))
		return err
	}},
	"stop": {"stop_work", func(ctx context.Context, r *Router, g handoff.Grant) error {
		return r.Stop(ctx, g, "mine", handoff.StopOurs)
	}},
	"stop theirs": {"stop_work", func(ctx context.Context, r *Router, g handoff.Grant) error {
		return r.Stop(ctx, g, "theirs", handoff.StopOurs)
	}},
	"move": {"queue_next", func(ctx context.Context, r *Router, g handoff.Grant) error {
		return r.Move(ctx, g, "mine", "")
	}},
	"say no": {"answer_agent", func(ctx context.Context, r *Router, g handoff.Grant) error {
		return r.Decide(ctx, g, "q", handoff.DecisionDecline)
	}},
	"say no, and stop": {"stop_work", func(ctx context.Context, r *Router, g handoff.Grant) error {
		return r.Decide(ctx, g, "q", handoff.DecisionStop)
	}},
	"answer in words": {"answer_agent", func(ctx context.Context, r *Router, g handoff.Grant) error {
		return r.Reply(ctx, g, "q", handoff.Reply{Words: "the second"})
	}},
	"say no in a call": {"answer_agent", func(ctx context.Context, r *Router, g handoff.Grant) error {
		return r.Answer(ctx, g, "q", handoff.Decided{Decision: handoff.DecisionDecline})
	}},
	"choose a session": {"codex", func(ctx context.Context, r *Router, g handoff.Grant) error {
		return r.PutSticky(ctx, g, "bigpc", "t", "")
	}},
	"forget a session": {"codex", func(ctx context.Context, r *Router, g handoff.Grant) error {
		return r.ClearSticky(ctx, g, "bigpc")
	}},
	"read theirs": {"status", func(ctx context.Context, r *Router, g handoff.Grant) error {
		_, err := r.Handoff(g, "theirs")
		return err
	}},
	"follow theirs": {"status", func(ctx context.Context, r *Router, g handoff.Grant) error {
		for _, err := range r.Follow(ctx, g, "theirs", 0) {
			return err
		}
		return nil
	}},
	"read what is past": {"status", func(ctx context.Context, r *Router, g handoff.Grant) error {
		_, _, err := r.Past(ctx, g, "theirs")
		return err
	}},
	"hear mine": {"any", func(ctx context.Context, r *Router, g handoff.Grant) error {
		return r.HeardForGood(ctx, g, "mine")
	}},
	"hear theirs": {"", func(ctx context.Context, r *Router, g handoff.Grant) error {
		return r.Heard(ctx, g, "theirs")
	}},
	"hear theirs for good": {"", func(ctx context.Context, r *Router, g handoff.Grant) error {
		return r.HeardForGood(ctx, g, "theirs")
	}},
}

// TestActs: whichever front it comes through, an act needs its tool, and what is the caller's own needs more than a key
// that is limited to some tools.
func TestActs(t *testing.T) {
	every := []string{"codex", "queue_next", "run_on_server", "stop_work", "answer_agent", "read_session", "status"}
	for name, tt := range acts {
		t.Run(name, func(t *testing.T) {
			with := func(tools []string) error {
				d := &desk{}
				r, _ := askingRouter(d, "q")
				r.cfg.Fleet = unknowing{}
				paused := endedWork("paused", "limited", "bigpc")
				paused.Paused, paused.Fault = true, handoff.Fault(handoff.CodePaused, "bigpc", "")
				recall(r.Router, endedWork("mine", "limited", "bigpc"), endedWork("theirs", "owner's", "bigpc"), paused)
				g := handoff.Grant{Caller: ladderCaller, Key: "limited", Tools: tools, Approve: handoff.ApproveAll}
				return tt.do(t.Context(), r.Router, g)
			}
			mayNot := func(err error) bool {
				code := handoff.CodeOf(err)
				return code == handoff.CodeNotGranted || code == handoff.CodeNotFound && strings.Contains(name, "theirs")
			}
			without := slices.DeleteFunc(slices.Clone(every), func(s string) bool { return slices.Contains(strings.Fields(tt.needs), s) })
			if name == "read theirs" || name == "follow theirs" { // who stops work has to find it
				without = slices.DeleteFunc(without, func(s string) bool { return s == "stop_work" })
			}
			if err := with(without); mayNot(err) != (tt.needs != "any") {
				t.Errorf("with %v: %v", without, err)
			}
			if err := with(every); mayNot(err) != (tt.needs == "") {
				t.Errorf("with every tool by name: %v", err)
			}
			if err := with(nil); mayNot(err) {
				t.Errorf("without a limit: %v", err)
			}
		})
	}
}

// TestListenersOfALimitedKey: a call of a key that is limited to some tools is told of the work that was given with the
// key alone. The caller's other outcomes wait for a call of theirs.
func TestListenersOfALimitedKey(t *testing.T) {
	r := running(t, Config{})
	recall(r, endedWork("mine", "limited", "bigpc"), endedWork("theirs", "owner's", "bigpc"))
	for _, id := range []string{"mine", "theirs"} {
		ask(r, &work.Keep{ID: id})
	}
	limited, owner := &ear{}, &ear{}
	r.Attend(handoff.Grant{Caller: ladderCaller, Key: "limited", Tools: []string{"codex", "status"}}, limited)()
	r.Attend(ladderGrant, owner)()
	slices.Sort(owner.away)
	if !slices.Equal(limited.away, []string{"mine"}) || !slices.Equal(owner.away, []string{"mine", "theirs"}) {
		t.Errorf("the limited key was told %v, the owner %v", limited.away, owner.away)
	}
}

// TestWhatIsOffered: a question is shown with the answers that its reader may give, and with no others.
func TestWhatIsOffered(t *testing.T) {
	all := []handoff.Decision{
		handoff.DecisionAccept, handoff.DecisionAcceptForSession, handoff.DecisionDecline, handoff.DecisionStop,
	}
	page := handoff.Grant{Caller: ladderCaller, Approve: handoff.ApproveAll, Page: true}
	api := handoff.Grant{Caller: ladderCaller, Approve: handoff.ApproveAll}
	voice := handoff.Grant{Caller: ladderCaller, Approve: handoff.ApproveVoice}
	limited := func(tools ...string) handoff.Grant {
		return handoff.Grant{Caller: ladderCaller, Approve: handoff.ApproveAll, Tools: tools}
	}
	for name, tt := range map[string]struct {
		grant   handoff.Grant
		command string
		there   string
		want    string
	}{
		"page":                      {page, "sudo reboot", "", "accept accept_for_session decline stop"},
		"page, answered there":      {page, "npm install", "it takes no answers", "decline stop"},
		"key":                       {api, "npm install", "", "accept decline stop"},
		"key, risky":                {api, "sudo reboot", "", "decline stop"},
		"key for its calls":         {voice, "npm install", "", "decline stop"},
		"key that stops nothing":    {limited("status", "answer_agent"), "npm install", "", "accept decline"},
		"key that answers nothing":  {limited("status", "stop_work"), "npm install", "", ""},
		"key that may not see that": {limited("codex"), "npm install", "", "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			r, q := askingRouter(&desk{}, "q")
			q.Question.Command, q.Shown.Decisions, q.Shown.There = tt.command, all, tt.there
			got := "nothing"
			for _, q := range r.Questions(tt.grant) {
				got = strings.Trim(fmt.Sprint(q.Decisions), "[]")
			}
			if got != tt.want {
				t.Errorf("offered is %q, want %q", got, tt.want)
			}
			for _, d := range all {
				err := mayDecideOffCall(q, tt.grant, d)
				if offered := slices.Contains(strings.Fields(got), string(d)); offered != (err == nil) && got != "nothing" {
					t.Errorf("%s: offered %v, %v", d, offered, err)
				}
			}
		})
	}
}
