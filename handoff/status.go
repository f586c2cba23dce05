package handoff

import (
	"context"
	"slices"
	"strings"
	"time"
)

func (s *serving) status(id string, req Request) {
	if err := parse(req.Arguments, &struct{}{}); err != nil {
		s.refuse(id, req, AsError(err))
		return
	}
	s.answer(id, req, statusAnswer(s.r.Handoffs(s.grant), s.r.Questions(s.grant), time.Now()), FloorAsk)
}

func (s *serving) setUpdates(id string, req Request) {
	var args struct {
		Level string `json:"level"`
	}
	err := parse(req.Arguments, &args, "level")
	level, ok := ParseSpeechLevel(args.Level)
	if err == nil && (!ok || args.Level == "") {
		err = Fault(CodeMalformed, "level must be quiet, milestones or chatty", "")
	}
	if err != nil {
		s.refuse(id, req, AsError(err))
		return
	}
	s.book.setUpdates(level)
	s.pace(levelEvent{level: level})
	for _, other := range s.book.openCalls() { // it is the caller's wish, whichever call they made it in
		if other != s.call {
			other.tell(levelEvent{level: level})
		}
	}
	s.answer(id, req, encode(answer{Status: "done", Say: "Okay."}), FloorUnlessSpoke)
}

// stopWork stops what the caller means, or asks which work that is.
func (s *serving) stopWork(ctx context.Context, id string, req Request) {
	var args struct {
		Server string `json:"server"`
	}
	if err := parse(req.Arguments, &args, "server"); err != nil {
		s.refuse(id, req, AsError(err))
		return
	}
	running := s.book.running()
	where := ""
	if said := strings.TrimSpace(args.Server); said != "" && !slices.Contains(allWords, strings.ToLower(said)) {
		ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
		defer cancel()
		t, err := s.r.fleet.Resolve(ctx, s.grant, Target{Server: said})
		if err != nil {
			s.refuse(id, req, AsError(err))
			return
		}
		where = t.Server
		running = slices.DeleteFunc(running, func(rec Record) bool {
			return rec.Server != t.Server || t.Project != "" && rec.Project != t.Project
		})
	}
	if len(running) > 1 && args.Server == "" {
		s.answer(id, req, unclearStop(running), FloorAsk)
		return
	}
	var stopped, shared []Record
	for _, rec := range slices.Backward(running) { // what waits first: it must not begin because the other has stopped
		if err := s.r.Stop(ctx, s.grant, rec.ID); err != nil && AsError(err).Code == CodeJoined {
			shared = append(shared, rec)
		} else { // it may have ended this moment, which is as good
			stopped = append(stopped, rec)
		}
	}
	slices.Reverse(shared)
	slices.Reverse(stopped)
	s.answer(id, req, stopAnswer(stopped, shared, where), FloorUnlessSpoke)
}

// allWords mean every machine.
var allWords = []string{"all", "everything", "every machine", "all of them", "both"}
