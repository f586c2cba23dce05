package realtime

import (
	"testing"
	"testing/synctest"
	"time"

	"switchboard/handoff"
	"switchboard/realtime/events"
	"switchboard/realtime/floor"
)

const (
	formats = `{"type":"` + events.TypeFormats + `","event_id":"sb_rtc_1","session":{"type":"realtime","audio":{"input":{"format":{"type":"audio/pcmu"}},"output":{"format":{"type":"audio/pcmu"}}}}}`
	opened  = `{"type":"` + events.TypeOpened + `"}`
	updated = `{"type":"session.updated","session":{"type":"realtime"}}`
)

// Nothing is said to a browser before its data channel is open and it had its time to set its session up: a voice that
// was heard cannot be changed. What its leg sets is not the client's.
func TestBrowserIsReadyWhenItsChannelIsOpen(t *testing.T) {
	begin := func(t *testing.T) *stage {
		client := newWire()
		s := newStageFor(t, client, performing{client})
		s.fromClient(formats)
		s.fromModel(freshSession)
		for _, e := range s.wantSent(s.model, "session.update session.update session.update") {
			_ = e
			s.fromModel(updated)
		}
		s.wantSent(s.client, "switchboard.session.created session.created switchboard.session.updated") // of them the client sees one
		s.say(handoff.Utterance{ID: "n", Text: "done", Floor: handoff.FloorAsk})
		s.wait(time.Minute)
		s.wantSent(s.model, "")
		return s
	}
	t.Run("it sets its session up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := begin(t)
			s.fromClient(opened)
			s.wait(floor.Delay[floor.TimerOpen] / 2)
			s.fromClient(`{"type":"session.update","event_id":"mine","session":{"type":"realtime","instructions":"mine"}}`)
			s.wantSent(s.model, "session.update")
			s.fromModel(updated)
			s.wantSent(s.client, "switchboard.session.updated session.updated")
			s.wantSent(s.model, "conversation.item.create:message response.create")
			s.close()
		})
	})
	t.Run("it does not", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := begin(t)
			s.fromClient(opened)
			s.wantSent(s.model, "")
			s.wait(floor.Delay[floor.TimerOpen])
			s.wantSent(s.model, "conversation.item.create:message response.create")
			s.close()
		})
	})
}

// Before the channel is open the session of the offer is in force, and still nobody is there to hear.
func TestSessionOfTheOfferIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newWire()
		s := newStageFor(t, client, performing{client})
		s.fromModel(freshSession)
		s.fromClient(offered)
		for range s.wantSent(s.model, "session.update session.update session.update") {
			s.fromModel(updated)
		}
		s.say(handoff.Utterance{ID: "n", Text: "done", Floor: handoff.FloorAsk})
		s.wait(time.Minute)
		s.wantSent(s.model, "")
		s.close()
	})
}
