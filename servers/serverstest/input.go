package serverstest

import "switchboard/handoff"

// picture is a PNG of one pixel.
const picture = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="

// testPictures: a turn and a steer take pictures beside text, and the agent gets them.
func testPictures(s *suite) {
	a := s.create()
	turn := s.next(PromptHello)
	turn.Input = append(turn.Input, handoff.Image{URL: picture})
	id, err := a.Agent.Start(s.Context(), turn)
	if err != nil {
		s.Fatalf("start: %v", err)
	}
	s.ended(s.follow(a, id), handoff.TurnCompleted, TextHello)
	id = s.wait(a)
	if err := s.controls(a).Steer(s.Context(), id,
		append(handoff.TextInput(PromptMind), handoff.Image{URL: picture})); err != nil {
		s.Fatalf("steer: %v", err)
	}
	s.h.Release()
	s.rest(a, id, TextMinded)
	if s.h.Pictures != nil && s.h.Pictures() < 2 {
		s.Errorf("the agent was shown %d pictures", s.h.Pictures())
	}
	before := s.h.Starts()
	turn = s.next(PromptHello)
	turn.Input = append(turn.Input, handoff.Image{URL: "file:///etc/hostname"})
	_, err = a.Agent.Start(s.Context(), turn)
	s.coded("a file of the server as a picture", err, handoff.CodeMalformed)
	if n := s.h.Starts() - before; n != 0 {
		s.Errorf("%d turns were started", n)
	}
}

// testSteersInOrder: the agent gets several steers in their order.
func testSteersInOrder(s *suite) {
	a := s.create()
	id := s.wait(a)
	for _, words := range []string{PromptWait, PromptMind} {
		if err := s.controls(a).Steer(s.Context(), id, handoff.TextInput(words)); err != nil {
			s.Fatalf("steer %q: %v", words, err)
		}
	}
	s.h.Release()
	s.rest(a, id, TextMinded)
	text := s.read(a.Target.Thread)
	said := func(words string) handoff.Line { return handoff.Line{Role: "user", Text: words} }
	s.reads(text.Lines, said(PromptWait), said(PromptWait), said(PromptMind),
		handoff.Line{Role: "agent", Text: TextMinded})
}

// testUsage: the usage of a turn is reported before its end, and never shrinks.
func testUsage(s *suite) {
	var last handoff.Usage
	for _, u := range s.run(s.create(), PromptCommand) {
		now, ok := u.(handoff.Usage)
		if !ok {
			continue
		}
		if now.Input < last.Input || now.Output < last.Output || now.Cached > now.Input || now.Reasoning > now.Output {
			s.Errorf("used %+v after %+v", now, last)
		}
		last = now
	}
	if last.Input <= 0 || last.Output <= 0 {
		s.Errorf("used %+v", last)
	}
}
