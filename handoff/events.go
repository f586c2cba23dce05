package handoff

// A Listener gets events of a caller's handoffs while they happen, as a call does. Its methods return at once, and
// never call back. They return false if the listener has left.
type Listener interface {
	// Hear takes an event of a handoff that was given to the listener.
	Hear(e Event) bool
	// Outbox takes records that ended while nobody listened. If it returns true, the listener tells them.
	Outbox(ended []Record) bool
}

// An Event is something that happened to a handoff.
type Event struct {
	ID     ID
	Seq    uint64 // of the handoff, from 1, without gaps; a delta and a snapshot have that of the event before
	Record Record // at that time, without items
	Noted  bool   // the ledger has an entry: a promise outlives the process
	Kind   EventKind
}

// An EventKind is what happened. It is one of the types below.
type EventKind interface{ eventKind() }

type (
	// EventSnapshot: the present state of the handoff; nothing happened. Items are what the agent has done or is doing,
	// oldest first, the newest 200.
	EventSnapshot struct {
		Items []RecordItem
		Usage Usage
	}
	// EventPlaced: the target is resolved.
	EventPlaced struct{}
	// EventNoted: the ledger has an entry of the handoff.
	EventNoted struct{}
	// EventPromised: the caller may be told that the work will be done, now or after what it waits for. It comes again
	// when work that has waited begins.
	EventPromised struct{ Waits Wait }
	// EventWaiting: the handoff was promised, and has to wait.
	EventWaiting struct{ Waits Wait }
	// EventJoined: its words went into a turn that somebody else began.
	EventJoined struct{}
	// EventDoing: the agent began an item.
	EventDoing struct {
		ID   string
		Item ItemKind
		Text string
	}
	// EventDelta is a piece of an item that the agent writes. It is advisory: [EventItem] has the whole. Listeners get
	// none.
	EventDelta struct {
		ItemID string
		Kind   DeltaKind
		At     int // number of bytes of the item before this piece, so that a gap shows; -1: not known
		Text   string
	}
	// EventItem: the agent finished an item. Listeners get [EventRemark] instead.
	EventItem struct{ Item Item }
	// EventDropped withdraws an item that will not be finished, and its deltas. Listeners do not get it.
	EventDropped struct{ ItemID string }
	// EventUsage is what the turn has used so far. Listeners do not get it.
	EventUsage struct{ Usage Usage }
	// EventRemark: the agent said something on the way, in its own words.
	EventRemark struct{ Text string }
	// EventAsked: the agent waits for the caller.
	EventAsked struct{ Question OpenQuestion }
	// EventAnswered: a question was answered, or withdrawn.
	EventAnswered struct{ Question QuestionID }
	// EventGaveUp: nobody answered a question in time, so it was declined.
	EventGaveUp struct{ Question RecordQuestion }
	// EventSteered: its words were added to another handoff of the caller.
	EventSteered struct{ Into ID }
	// EventSilent: the turn has reported nothing for long. It is still followed.
	EventSilent struct{}
	// EventGoesOn: the agent goes on by itself with the goal of the session. It comes once.
	EventGoesOn struct{}
	// EventLost: the agent was lost, and the router tries to reconnect.
	EventLost struct{}
	// EventTaken: the listener that gets this event has the handoff from here on. Questions are its open ones.
	EventTaken struct{ Questions []OpenQuestion }
	// EventEnded: the record has its outcome.
	EventEnded struct{}
	// EventHeard: the caller was told the outcome, here or elsewhere. The event is not in the log: it goes only to the
	// listener that was given the outcome.
	EventHeard struct{}
	// EventByHand: the caller did something with the handoff outside of calls: on the page, from a terminal or by the
	// API. The event is not in the log; it goes to every listener that may hear of the handoff.
	EventByHand struct {
		Deed Deed
		// With [DeedAnswer]: the question, and its answer.
		Question RecordQuestion
		Decision Decision
	}
	// EventYielded: another home or life of the process has the handoff, and publishes the rest.
	EventYielded struct{}
)

func (EventSnapshot) eventKind() {}
func (EventPlaced) eventKind()   {}
func (EventNoted) eventKind()    {}
func (EventPromised) eventKind() {}
func (EventWaiting) eventKind()  {}
func (EventJoined) eventKind()   {}
func (EventDoing) eventKind()    {}
func (EventDelta) eventKind()    {}
func (EventItem) eventKind()     {}
func (EventDropped) eventKind()  {}
func (EventUsage) eventKind()    {}
func (EventRemark) eventKind()   {}
func (EventAsked) eventKind()    {}
func (EventAnswered) eventKind() {}
func (EventGaveUp) eventKind()   {}
func (EventSteered) eventKind()  {}
func (EventSilent) eventKind()   {}
func (EventGoesOn) eventKind()   {}
func (EventLost) eventKind()     {}
func (EventTaken) eventKind()    {}
func (EventEnded) eventKind()    {}
func (EventHeard) eventKind()    {}
func (EventByHand) eventKind()   {}
func (EventYielded) eventKind()  {}

// A Deed is what the caller did with work outside of calls.
type Deed string

// The deeds.
const (
	DeedAnswer   Deed = "answer"   // they answered a question of its agent
	DeedContinue Deed = "continue" // they began paused work
	DeedDrop     Deed = "drop"     // they dropped paused work
	DeedStop     Deed = "stop"
)

// Wait says what a handoff waits for before it begins.
type Wait int

// The things to wait for.
const (
	WaitsNot    Wait = iota // nothing
	WaitsOurs               // earlier work from here
	WaitsTheirs             // work that somebody started elsewhere
	WaitsYes                // the caller's yes to a copy
)
