package router

import (
	"fmt"
	"slices"
	"testing"

	"switchboard/handoff"
)

// TestWhoMayAnswer: only the page's login is a tap. A key allows something only if it says approve: all, never what
// takes a tap and never for longer than this once; the audit says how it came. A no harms nobody, and counts from
// everyone.
func TestWhoMayAnswer(t *testing.T) {
	page := handoff.Grant{Caller: ladderCaller, Approve: handoff.ApproveAll, Page: true}
	api := handoff.Grant{Caller: ladderCaller, Approve: handoff.ApproveAll}
	plain := handoff.Grant{Caller: ladderCaller}
	elsewhere := handoff.Grant{Caller: ladderCaller, Approve: handoff.ApproveAll, Servers: []string{"laptop"}}
	bare := handoff.Grant{Caller: ladderCaller, Page: true}
	voice := handoff.Grant{Caller: ladderCaller, Approve: handoff.ApproveVoice}
	for name, tt := range map[string]struct {
		grant    handoff.Grant
		command  string
		decision handoff.Decision
		code     handoff.Code
		audited  string
	}{
		"page, install": {page, "npm install", handoff.DecisionAccept, "", "[accept by page]"},
		"page, sudo":    {page, "sudo reboot", handoff.DecisionAccept, "", "[accept by page]"},
		"page, sudo for the session": {
			page, "sudo reboot", handoff.DecisionAcceptForSession, "", "[accept_for_session by page]",
		},
		"page of a key without approve": {bare, "npm install", handoff.DecisionAccept, handoff.CodeNeedsTap, "[]"},
		"key, install":                  {api, "npm install", handoff.DecisionAccept, "", "[accept by api]"},
		"key, sudo":                     {api, "sudo reboot", handoff.DecisionAccept, handoff.CodeNeedsTap, "[]"},
		"key, for the session":          {api, "npm install", handoff.DecisionAcceptForSession, handoff.CodeNeedsTap, "[]"},
		"key, no to sudo":               {api, "sudo reboot", handoff.DecisionDecline, "", "[decline by api]"},
		"key, stop":                     {api, "sudo reboot", handoff.DecisionStop, "", "[stop by api]"},
		"key without approve":           {plain, "npm install", handoff.DecisionAccept, handoff.CodeNeedsTap, "[]"},
		"key without approve, no":       {plain, "npm install", handoff.DecisionDecline, "", "[decline by api]"},
		"key for its calls":             {voice, "npm install", handoff.DecisionAccept, handoff.CodeNeedsTap, "[]"},
		"key for its calls, no":         {voice, "npm install", handoff.DecisionDecline, "", "[decline by api]"},
		"key of another machine":        {elsewhere, "npm install", handoff.DecisionAccept, handoff.CodeNotPending, "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &desk{}
			r, q := askingRouter(d, "q")
			q.Question.Command, q.Shown.Decisions = tt.command, []handoff.Decision{
				handoff.DecisionAccept, handoff.DecisionAcceptForSession, handoff.DecisionDecline, handoff.DecisionStop,
			}
			err := r.Decide(t.Context(), tt.grant, "q", tt.decision)
			if got := handoff.CodeOf(err); got != tt.code {
				t.Errorf("answered with %v, want %q", err, tt.code)
			}
			if got := fmt.Sprint(d.decisions()); got != tt.audited || len(d.given) != len(d.audited) {
				t.Errorf("written down %s, given %v; want %s", got, d.given, tt.audited)
			}
			if open := r.question(ladderGrant, "q") != nil; open != (tt.code != "") {
				t.Errorf("open: %v", open)
			}
			isQ := func(q handoff.RecordQuestion) bool { return q.ID == "q" }
			if slices.ContainsFunc(r.Questions(tt.grant), isQ) && !tt.grant.AllowsServer("bigpc") {
				t.Error("a question of a machine that may not be used is shown")
			}
		})
	}
}

// TestWhoMayReply: words are an answer like others.
func TestWhoMayReply(t *testing.T) {
	r := NewRouter(Config{Caller: ladderCaller})
	for _, approve := range []handoff.Approval{handoff.ApproveNone, handoff.ApproveVoice} {
		err := r.Reply(t.Context(), handoff.Grant{Caller: ladderCaller, Approve: approve}, "q", handoff.Reply{Words: "yes"})
		if handoff.CodeOf(err) != handoff.CodeNeedsTap {
			t.Errorf("approve %s: answered %v", approve, err)
		}
	}
}

// TestWhoseYesCountsInACall: with approve: none, nothing that was said or typed in a call allows anything. A no counts.
func TestWhoseYesCountsInACall(t *testing.T) {
	for name, tt := range map[string]struct {
		approve handoff.Approval
		answer  handoff.Decided
		code    handoff.Code
		audited string
	}{
		"none, said": {
			handoff.ApproveNone, handoff.Decided{Decision: handoff.DecisionAccept, By: handoff.ByVoice},
			handoff.CodeNeedsTap, "[]",
		},
		"none, typed": {
			handoff.ApproveNone, handoff.Decided{Decision: handoff.DecisionAccept, By: handoff.ByTyping},
			handoff.CodeNeedsTap, "[]",
		},
		"none, words": {
			handoff.ApproveNone, handoff.Decided{Decision: handoff.DecisionWords, Reply: handoff.Reply{Words: "1.2.3"}, By: handoff.ByVoice},
			handoff.CodeNeedsTap, "[]",
		},
		"none, no": {
			handoff.ApproveNone, handoff.Decided{Decision: handoff.DecisionDecline, By: handoff.ByVoice}, "",
			"[decline by voice]",
		},
		"voice, said": {
			handoff.ApproveVoice, handoff.Decided{Decision: handoff.DecisionAccept, By: handoff.ByVoice}, "",
			"[accept by voice]",
		},
		"voice, typed": {
			handoff.ApproveVoice, handoff.Decided{Decision: handoff.DecisionAccept, By: handoff.ByTyping}, "",
			"[accept by typed]",
		},
		"all, said": {
			handoff.ApproveAll, handoff.Decided{Decision: handoff.DecisionAccept, By: handoff.ByVoice}, "",
			"[accept by voice]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := &desk{}
			r, q := askingRouter(d, "q")
			q.Question.Words, q.Replies = true, true
			err := r.Answer(t.Context(), handoff.Grant{Caller: ladderCaller, Approve: tt.approve}, "q", tt.answer)
			if got := handoff.CodeOf(err); got != tt.code {
				t.Errorf("answered with %v, want %q", err, tt.code)
			}
			if got := fmt.Sprint(d.decisions()); got != tt.audited || len(d.given) != len(d.audited) {
				t.Errorf("written down %s, given %v; want %s", got, d.given, tt.audited)
			}
		})
	}
}
