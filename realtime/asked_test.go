package realtime

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/realtime/events"
)

// gives has the model call a tool of ours in a response, which answers an ask; "": voice detection began it.
func (s *stage) gives(response, tag, call, tool string) {
	s.t.Helper()
	it := callItem("item_"+call, call, tool, events.StatusCompleted)
	s.fromModel(began(response, tag), itemDone(response, it), done(response, tag, events.StatusCompleted, it, saidItem("hm")))
}

// outcome has an outcome told, and returns the tag of the ask for it.
func (s *stage) outcome(id string) string { s.model.sent(); return s.asks(id) }

// answers gives the output of a request, and returns the tag of the ask for it; "": nothing was asked.
func (s *stage) answers(call string, plain bool) string {
	s.model.sent()
	s.say(handoff.Utterance{ID: "to-" + strings.ReplaceAll(call, "_", "-"), CallID: call, Text: "{}",
		Floor: handoff.FloorAsk, Plain: plain})
	return s.sentTag()
}

// sentTag returns the tag of the newest ask that the model got; "": it got none.
func (s *stage) sentTag() (tag string) {
	for _, e := range s.model.sent() {
		if t := tagIn(e); t != "" {
			tag = t
		}
	}
	return tag
}

// says has the caller say something, as voice detection reports it, and the item that the model makes of it; "-":
// without a transcript so far.
func (s *stage) says(item, words string) {
	s.fromModel(speechStarted(item))
	s.wait(time.Second)
	s.fromModel(speechStopped(item), committed(item), itemAdded(fmt.Sprintf(`{"id":%q,"type":"message","role":"user",`+
		`"content":[{"type":"input_audio","transcript":null}]}`, item)))
	if words != "-" {
		s.fromModel(transcribed(item, words))
	}
}

func committed(item string) string {
	return fmt.Sprintf(`{"type":"input_audio_buffer.committed","item_id":%q}`, item)
}

func putItem(item, role, text string) string {
	return fmt.Sprintf(`{"type":"conversation.item.create","item":{"id":%q,"type":"message","role":%q,`+
		`"content":[{"type":"input_text","text":%q}]}}`, item, role, text)
}

const bareAsk = `{"type":"response.create"}`

// turns sets how the client detects turns: a raw value.
func (s *stage) turns(detection string) {
	s.fromClient(`{"type":"session.update","session":{"type":"realtime","audio":{"input":{"turn_detection":` +
		detection + `}}}}`)
	s.fromModel(`{"type":"session.updated","session":{"type":"realtime"}}`)
	s.model.sent()
}

// asked returns which requests the router got since the last check, and whether the caller's words asked for them.
func (s *stage) asked() string {
	var all []string
	for _, e := range s.router.heard() {
		if f, ok := e.(handoff.FunctionCall); ok {
			all = append(all, f.CallID+map[bool]string{true: " nobody", false: " caller"}[f.Asked.IsZero()])
		}
	}
	return strings.Join(all, ", ")
}

// whoAsked are what happens in a call, and who asked for the requests in it.
var whoAsked = map[string]struct {
	run  func(s *stage)
	want string
}{
	"the caller speaks": {func(s *stage) {
		s.says("u1", "run it")
		s.gives("r1", "", "c1", "codex")
	}, "c1 caller"},
	"nobody has said anything": {func(s *stage) {
		s.fromClient(bareAsk)
		s.gives("r1", s.sentTag(), "c1", "codex")
		s.gives("r2", "", "c2", "codex")
	}, "c1 nobody, c2 nobody"},
	"a list goes on with what they asked for": {func(s *stage) {
		s.says("u1", "run it in the auth session")
		s.gives("r1", "", "c1", "list_servers")
		s.gives("r2", s.answers("c1", true), "c2", "codex")
		s.gives("r3", s.answers("c2", true), "c3", "codex")
	}, "c1 caller, c2 caller, c3 caller"},
	"an outcome asks for nothing": {func(s *stage) {
		s.says("u1", "run it")
		s.gives("r1", "", "c1", "codex")
		tag := s.answers("c1", true)
		s.fromModel(began("r1b", tag), doneSaying("r1b", tag, "It runs."))
		s.gives("r2", s.outcome("n"), "c2", "codex")
		s.gives("r3", s.answers("c2", true), "c3", "codex")
		s.says("u2", "yes, do it")
		s.gives("r4", "", "c4", "codex")
	}, "c1 caller, c2 nobody, c3 nobody, c4 caller"},
	"nor does one that is an answer": {func(s *stage) {
		s.says("u1", "run it")
		s.gives("r1", "", "c1", "codex")
		s.gives("r2", s.answers("c1", false), "c2", "codex")
		s.gives("r3", s.answers("c2", true), "c3", "codex")
	}, "c1 caller, c2 nobody, c3 nobody"},
	"nor one that the client asks for": {func(s *stage) {
		s.says("u1", "run it")
		s.gives("r1", "", "c1", "codex")
		s.answers("c1", false)
		s.fromModel(began("r2", "a1"), done("r2", "a1", events.StatusCompleted))
		s.model.sent()
		s.fromClient(bareAsk)
		s.gives("r3", s.sentTag(), "c2", "codex")
	}, "c1 caller, c2 nobody"},
	"a notice asks for nothing": {func(s *stage) {
		s.says("u1", "hello")
		s.fromModel(began("r1", ""), done("r1", "", events.StatusCompleted))
		s.gives("r2", s.outcome("last-minute"), "c1", "codex")
	}, "c1 nobody"},
	"a silent note changes nothing": {func(s *stage) {
		s.says("u1", "run it")
		s.gives("r1", "", "c1", "list_servers")
		s.say(handoff.Utterance{ID: "note", Text: "bigpc: now give laptop work"})
		s.gives("r2", s.answers("c1", true), "c2", "codex")
	}, "c1 caller, c2 caller"},
	"an outcome that comes while they speak": {func(s *stage) {
		s.fromModel(speechStarted("u1"))
		s.say(handoff.Utterance{ID: "n", Text: "done", Floor: handoff.FloorAsk})
		s.fromModel(speechStopped("u1"), committed("u1"), transcribed("u1", "run it"))
		s.gives("r1", "", "c1", "codex")
		s.gives("r2", s.sentTag(), "c2", "codex")
	}, "c1 caller, c2 nobody"},
	"an answer that comes after they spoke": {func(s *stage) {
		s.says("u1", "which branch is it")
		s.gives("r1", "", "c1", "run_on_server")
		s.says("u2", "and run the tests")
		s.answers("c1", false)
		s.gives("r2", "", "c2", "codex")
	}, "c1 caller, c2 caller"},
	"a cough": {func(s *stage) {
		s.says("u1", "run it")
		s.gives("r1", "", "c1", "codex")
		s.gives("r2", s.outcome("n"), "c2", "list_servers")
		s.says("u2", "")
		s.gives("r3", "", "c3", "codex")
	}, "c1 caller, c2 nobody, c3 nobody"},
	"a cough whose transcript comes later": {func(s *stage) {
		s.says("u1", "-")
		s.gives("r1", "", "c1", "codex")
		s.gives("r2", "", "c2", "list_servers")
		s.fromModel(transcribed("u1", ""))
	}, "c2 nobody, c1 nobody"},
	"words whose transcript comes later": {func(s *stage) {
		s.says("u1", "-")
		s.gives("r1", "", "c1", "codex")
		s.wait(time.Second)
		s.fromModel(transcribed("u1", "run it"))
	}, "c1 caller"},
	"a stop while what it is to stop waits": {func(s *stage) {
		s.says("u1", "-")
		s.gives("r1", "", "c1", "codex")
		s.says("u2", "stop")
		s.gives("r2", "", "c2", "run_on_server")
		s.gives("r3", "", "c3", "list_servers")
		s.fromModel(transcribed("u1", "run it"))
		s.gives("r4", "", "c4", "codex")
	}, "c3 caller, c1 caller, c2 caller, c4 caller"},
	"a stop of what waits for a transcript that never comes": {func(s *stage) {
		s.says("u1", "-")
		s.gives("r1", "", "c1", "codex")
		s.says("u2", "stop")
		s.gives("r2", "", "c2", "run_on_server")
		s.wait(askedWithin)
	}, "c1 caller, c2 caller"},
	"words whose transcript never comes": {func(s *stage) {
		s.says("u1", "-")
		s.gives("r1", "", "c1", "codex")
		s.wait(askedWithin)
		s.says("u2", "-")
		s.gives("r2", "", "c2", "codex")
	}, "c1 caller, c2 caller"},
	"words whose transcript fails": {func(s *stage) {
		s.says("u1", "-")
		s.gives("r1", "", "c1", "codex")
		s.fromModel(`{"type":"conversation.item.input_audio_transcription.failed","item_id":"u1"}`)
	}, "c1 caller"},
	"a cough after words that had no answer": {func(s *stage) {
		s.says("u1", "run it")
		s.says("u2", "")
		s.gives("r1", "", "c1", "codex")
	}, "c1 caller"},
	"a murmur while an outcome is told": {func(s *stage) {
		tag := s.outcome("n")
		it := callItem("item_c1", "c1", "codex", events.StatusCompleted)
		s.fromModel(began("r1", tag), itemDone("r1", it))
		s.says("u1", "mhm")
		s.fromModel(done("r1", tag, events.StatusCompleted, it, saidItem("hm")))
		s.wait(2 * time.Second)
		s.gives("r2", s.answers("c1", true), "c2", "codex")
	}, "c1 nobody, c2 nobody"},
	"typed": {func(s *stage) {
		s.fromClient(putItem("t1", "user", "run it"), bareAsk)
		s.gives("r1", s.sentTag(), "c1", "codex")
		s.gives("r2", s.outcome("n"), "c2", "codex")
		s.fromClient(putItem("t2", "user", "yes"), bareAsk)
		s.gives("r3", s.sentTag(), "c3", "codex")
	}, "c1 caller, c2 nobody, c3 caller"},
	"spoken after something was typed": {func(s *stage) {
		s.fromClient(strings.Replace(putItem("", "user", "run it"), `"id":"",`, "", 1), bareAsk)
		s.gives("r1", s.sentTag(), "c1", "codex")
		s.gives("r2", s.outcome("n"), "c2", "codex")
		s.says("u1", "yes")
		s.gives("r3", "", "c3", "codex")
	}, "c1 caller, c2 nobody, c3 caller"},
	"items of the client that nobody said": {func(s *stage) {
		s.fromClient(putItem("t1", "system", "run it"), putItem("t2", "assistant", "run it"), bareAsk)
		s.gives("r1", s.sentTag(), "c1", "codex")
	}, "c1 nobody"},
	"a message with sound": {func(s *stage) {
		s.fromClient(`{"type":"conversation.item.create","item":{"type":"message","role":"user",`+
			`"content":[{"type":"input_audio","audio":"AAAA"}]}}`, bareAsk)
		s.gives("r1", s.sentTag(), "c1", "codex")
	}, "c1 caller"},
	"an ask that brings words": {func(s *stage) {
		s.fromClient(`{"type":"response.create","response":{"input":[{"type":"message","role":"user",` +
			`"content":[{"type":"input_text","text":"run it"}]}]}}`)
		s.gives("r1", s.sentTag(), "c1", "codex")
		s.fromClient(`{"type":"response.create","response":{"input":[{"type":"message","role":"system",` +
			`"content":[{"type":"input_text","text":"run it"}]}]}}`)
		s.gives("r2", s.sentTag(), "c2", "codex")
	}, "c1 caller, c2 nobody"},
	"typed while an outcome is told": {func(s *stage) {
		tag := s.outcome("n")
		s.fromModel(began("r1", tag))
		s.fromClient(putItem("t1", "user", "run it"), bareAsk)
		it := callItem("item_c1", "c1", "codex", events.StatusCompleted)
		s.fromModel(itemDone("r1", it), done("r1", tag, events.StatusCompleted, it))
		s.gives("r2", s.sentTag(), "c2", "codex")
	}, "c1 nobody, c2 caller"},
	"a call of the client beside ours": {func(s *stage) {
		s.says("u1", "run it there")
		theirs := callItem("item_w", "w", "where", events.StatusCompleted)
		s.fromModel(began("r1", ""), itemDone("r1", theirs), done("r1", "", events.StatusCompleted, theirs))
		s.fromClient(`{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":"w",`+
			`"output":"here"}}`, bareAsk)
		s.gives("r2", s.sentTag(), "c1", "codex")
	}, "c1 caller"},
	"without turn detection": {func(s *stage) {
		s.turns("null")
		s.fromClient(`{"type":"input_audio_buffer.append","audio":"AAAA"}`, `{"type":"input_audio_buffer.commit"}`,
			bareAsk)
		s.fromModel(committed("u1"), transcribed("u1", "run it"))
		s.gives("r1", s.sentTag(), "c1", "codex")
		s.say(handoff.Utterance{ID: "n", Text: "done", Floor: handoff.FloorAsk})
		s.fromClient(bareAsk) // the outcome rides on it
		s.gives("r2", s.sentTag(), "c2", "codex")
		s.fromClient(bareAsk)
		s.gives("r3", s.sentTag(), "c3", "codex")
		s.fromClient(`{"type":"input_audio_buffer.append","audio":"AAAA"}`, `{"type":"input_audio_buffer.commit"}`,
			bareAsk)
		s.fromModel(committed("u2"), transcribed("u2", "yes"))
		s.gives("r4", s.sentTag(), "c4", "codex")
	}, "c1 caller, c2 nobody, c3 nobody, c4 caller"},
	"without turn detection, and nothing was said": {func(s *stage) {
		s.turns("null")
		s.fromClient(`{"type":"input_audio_buffer.append","audio":"AAAA"}`, `{"type":"input_audio_buffer.commit"}`,
			bareAsk)
		s.fromModel(`{"type":"error","error":{"code":"input_audio_buffer_commit_empty","message":"no sound"}}`)
		s.gives("r1", s.sentTag(), "c1", "codex")
	}, "c1 nobody"},
	"without turn detection, after a commit that was refused": {func(s *stage) {
		s.turns("null")
		commits := func(call string, answer ...string) {
			s.fromClient(`{"type":"input_audio_buffer.append","audio":"AAAA"}`, `{"type":"input_audio_buffer.commit"}`, bareAsk)
			s.fromModel(answer...)
			s.gives("r"+call, s.sentTag(), call, "codex")
		}
		commits("c1", `{"type":"error","error":{"code":"input_audio_buffer_commit_empty","message":"no sound"}}`)
		commits("c2", committed("u2"), transcribed("u2", "run it"))
		s.say(handoff.Utterance{ID: "n", Text: "done", Floor: handoff.FloorAsk})
		s.fromClient(bareAsk) // the outcome rides on it
		s.gives("rc3", s.sentTag(), "c3", "list_servers")
		commits("c4", committed("u4"), transcribed("u4", ""))
	}, "c1 nobody, c2 caller, c3 nobody, c4 nobody"},
	"voice detection that asks for no response": {func(s *stage) {
		s.turns(`{"type":"server_vad","create_response":false}`)
		s.fromModel(speechStarted("u1"))
		s.say(handoff.Utterance{ID: "n", Text: "done", Floor: handoff.FloorAsk})
		s.fromModel(speechStopped("u1"), committed("u1"), transcribed("u1", "run it"))
		outcome := s.sentTag()
		s.fromClient(bareAsk)
		s.gives("r1", outcome, "c1", "codex")
		s.gives("r2", s.sentTag(), "c2", "codex")
	}, "c1 nobody, c2 caller"},
	"a model that drops tags": {func(s *stage) {
		s.says("u1", "run it")
		s.gives("r1", "", "c1", "codex")
		s.outcome("n")
		s.gives("r2", "", "c2", "codex")
		s.wait(5 * time.Second)
		s.outcome("m")
		s.gives("r3", "", "c3", "codex")
	}, "c1 caller, c2 nobody, c3 nobody"},
	"a model that does not report the end of speech": {func(s *stage) {
		s.fromModel(speechStarted("u1"))
		s.gives("r1", "", "c1", "codex")
		s.fromModel(transcribed("u1", "run it"))
	}, "c1 caller"},
	"hung up before the transcript": {func(s *stage) {
		s.says("u1", "-")
		s.gives("r1", "", "c1", "codex")
		s.close()
		s.ended <- nil
	}, "c1 caller"},
}

func TestWhoAsked(t *testing.T) {
	for name, c := range whoAsked {
		for kind, play := range map[string]func(*testing.T, func(*stage)){
			"socket": play, "browser": playBrowser, "attached": playAttached,
		} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				play(t, func(s *stage) {
					c.run(s)
					if got := s.asked(); got != c.want {
						t.Errorf("asked: %s\nwant   %s", got, c.want)
					}
				})
			})
		}
	}
}

// TestWordsBeforeRequest: the words that a request waited for are reported before it: the agent is told them, and a
// stop among them counts before what is asked for instead.
func TestWordsBeforeRequest(t *testing.T) {
	play(t, func(s *stage) {
		s.says("u1", "-")
		s.gives("r1", "", "c1", "codex")
		s.router.heard()
		s.fromModel(transcribed("u1", "run it"))
		var order []string
		for _, e := range s.router.heard() {
			switch e := e.(type) {
			case handoff.Heard:
				order = append(order, e.Text)
			case handoff.FunctionCall:
				order = append(order, e.CallID)
			}
		}
		if got := strings.Join(order, ", "); got != "run it, c1" {
			t.Errorf("reported: %s", got)
		}
	})
}

// What the microphone picks up of the voice is nobody's words. Long after the voice, the same words are the caller's.
func TestEchoAsksForNothing(t *testing.T) {
	play(t, func(s *stage) {
		s.call.mu.Lock()
		s.call.hearing.echo = func(words, said string) bool { return strings.Contains(said, words) }
		s.call.mu.Unlock()
		tag := s.outcome("n")
		s.fromModel(began("r1", tag), audio("r1", 3*time.Second), doneSaying("r1", tag, "Mini says: yes, go ahead."))
		s.wait(time.Second)
		s.says("u1", "yes, go ahead")
		s.gives("r2", "", "c1", "codex")
		s.wait(5 * time.Second)
		s.says("u2", "yes, go ahead")
		s.gives("r3", "", "c2", "codex")
		if got := s.asked(); got != "c1 nobody, c2 caller" {
			t.Errorf("asked: %s", got)
		}
	})
}

// doneSaying ends a response in which the voice said this.
func doneSaying(response, tag, words string) string {
	return done(response, tag, events.StatusCompleted, saidItem(words))
}

func saidItem(words string) string {
	return fmt.Sprintf(`{"id":"i","type":"message","status":"completed","role":"assistant",`+
		`"content":[{"type":"output_audio","transcript":%q}]}`, words)
}

// In a call that the provider carries, the caller's items come from the model, and others may ask for responses.
func TestWhoAskedAttached(t *testing.T) {
	playAttached(t, func(s *stage) {
		s.says("u1", "run it")
		s.gives("r1", "", "c1", "codex")
		s.gives("r2", s.outcome("n"), "c2", "codex")
		s.fromModel(began("r3", ""), done("r3", "", events.StatusCompleted)) // its client's, to nothing
		s.gives("r4", "", "c3", "codex")
		s.fromModel(itemAdded(`{"id":"t1","type":"message","role":"user","content":[{"type":"input_text","text":"yes"}]}`))
		s.gives("r5", "", "c4", "codex")
		s.gives("r6", s.outcome("m"), "c5", "codex")
		s.fromModel(committed("u2"), transcribed("u2", "do it")) // its client detects turns
		s.gives("r7", "", "c6", "codex")
		if got, want := s.asked(), "c1 caller, c2 nobody, c3 nobody, c4 caller, c5 nobody, c6 caller"; got != want {
			t.Errorf("asked: %s\nwant   %s", got, want)
		}
	})
}

// A new session of the model goes on with what the caller said in the one before.
func TestWhoAskedAcrossSessions(t *testing.T) {
	playRenewed(t, func(s *stage, h *successors) {
		s.says("u1", "run it")
		s.fromModel(began("r1", ""))
		h.lose()
		h.begin(freshSession)
		synctest.Wait()
		s.wait(time.Second)
		s.gives("r2", s.sentTag(), "c1", "codex")
		if got := s.asked(); got != "c1 caller" {
			t.Errorf("asked: %s", got)
		}
	})
}
