package router

import (
	"context"
	"slices"
	"strings"
	"switchboard/handoff"
	"switchboard/handoff/speech"
	"switchboard/handoff/tools"
	"switchboard/handoff/wording"
	"time"
)

func (s *serving) status(id string, req handoff.Request) {
	if err := tools.Parse(req.Arguments, &struct{}{}); err != nil {
		s.refuse(id, req, handoff.AsError(err))
		return
	}
	s.answer(id, req, tools.StatusAnswer(s.r.Handoffs(s.grant), s.r.Questions(s.grant), time.Now()), handoff.FloorAsk)
}

func (s *serving) setUpdates(id string, req handoff.Request) {
	var args struct {
		Level string `json:"level"`
	}
	err := tools.Parse(req.Arguments, &args, "level")
	level, ok := handoff.ParseSpeechLevel(args.Level)
	if err == nil && (!ok || args.Level == "") {
		err = handoff.Fault(handoff.CodeMalformed, "level must be quiet, milestones or chatty", "")
	}
	if err != nil {
		s.refuse(id, req, handoff.AsError(err))
		return
	}
	s.book.setUpdates(level)
	s.pace(speech.LevelSet{Level: level})
	for _, other := range s.book.openCalls() { // it is the caller's wish, whichever call they made it in
		if other != s.call {
			other.tell(speech.LevelSet{Level: level})
		}
	}
	s.answer(id, req, handoff.Encode(wording.Answer{Status: "done", Say: "Okay."}), handoff.FloorUnlessSpoke)
}

// stopWork stops what the caller means, or asks which work that is.
func (s *serving) stopWork(ctx context.Context, id string, req handoff.Request) {
	var args struct {
		Server string `json:"server"`
	}
	if err := tools.Parse(req.Arguments, &args, "server"); err != nil {
		s.refuse(id, req, handoff.AsError(err))
		return
	}
	running := s.book.running()
	where := ""
	if said := strings.TrimSpace(args.Server); said != "" && !slices.Contains(allWords, strings.ToLower(said)) {
		ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
		defer cancel()
		t, err := s.r.fleet.Resolve(ctx, s.grant, handoff.Target{Server: said})
		if err != nil {
			s.refuse(id, req, handoff.AsError(err))
			return
		}
		where = t.Server
		running = slices.DeleteFunc(running, func(rec handoff.Record) bool {
			return rec.Server != t.Server || t.Project != "" && rec.Project != t.Project
		})
	}
	if len(running) > 1 && args.Server == "" {
		s.answer(id, req, tools.UnclearStop(running), handoff.FloorAsk)
		return
	}
	var stopped, shared []handoff.Record
	for _, rec := range slices.Backward(running) { // what waits first: it must not begin because the other has stopped
		if err := s.r.Stop(ctx, s.grant, rec.ID); err != nil && handoff.AsError(err).Code == handoff.CodeJoined {
			shared = append(shared, rec)
		} else { // it may have ended this moment, which is as good
			stopped = append(stopped, rec)
		}
	}
	slices.Reverse(shared)
	slices.Reverse(stopped)
	s.answer(id, req, tools.StopAnswer(stopped, shared, where), handoff.FloorUnlessSpoke)
}

// allWords mean every machine.
var allWords = []string{"all", "everything", "every machine", "all of them", "both"}
