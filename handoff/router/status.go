package router

import (
	"switchboard/handoff"
	"switchboard/handoff/speech"
	"switchboard/handoff/tools"
	"switchboard/handoff/wording"
)

// setUpdates takes how much the caller wants to hear.
func (s *serving) setUpdates(id string, req handoff.Request, args tools.UpdatesArguments) {
	s.book.setUpdates(args.Level)
	s.pace(speech.LevelSet{Level: args.Level})
	for _, other := range s.book.openCalls() { // it is the caller's wish, whichever call they made it in
		if other != s.call {
			other.tell(speech.LevelSet{Level: args.Level})
		}
	}
	s.answer(id, req, handoff.Encode(wording.Answer{Status: "done", Say: "Okay."}), handoff.FloorUnlessSpoke)
}
