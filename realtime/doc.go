// Package realtime is the voice front: an endpoint compatible with OpenAI's Realtime API, the client and model legs of
// a call, the floor that lets one response run at a time, and the masking that keeps our tools out of the client's
// sight. It hands completed function calls to a router and gives the router's answers and messages to the voice model.
//
// It must not know servers, threads or turns: the same router would serve other voice fronts, and the same front
// another router. The floor, the mask and recall decide or remember in packages of their own, and rtc carries browsers;
// WebSockets are carried here.
//
// # Concurrency
//
// A call ([Call]) has one lock for all of its state. Nobody waits while holding it: what has to be sent is put into a
// queue. The goroutine that reads an event from a socket hands it to the call, then writes to the other side what that
// side takes without waiting: waking another goroutine would cost more than all the work on a frame. One loop in each
// call handles what comes from no socket. What a far end does not take at once is written by a goroutine that ends when
// all of it is written. [Front.Run] owns the goroutines of all calls and returns after the last has ended. The floor,
// the mask and the code that follows the sound are pure: time enters as a value.
//
// # Inside a call
//
// Five owners share the lock. legs are the two ends, and further sockets of the same client. saying is what the model
// is made to say: utterances, asks, the floor. hearing is what the caller hears and says: playback, speech, evidence
// that the client is there. session is how the client's session begins, is set, and goes on when the client comes back.
// renewal is how the call goes on when the model's session ends. Each uses those before it, saying tells hearing what
// was given, and they share a core: alarms, reports for the router, counts, the end. The call hands them the events
// (events_client.go, events_model.go), and does what needs all of them.
//
// Either leg can be replaced under the lock while the call goes on. Only legs keeps a reference to a leg: events of one
// that was replaced are dropped, its end ends nothing, and the loop waits for the new one. The client's is replaced
// when it comes back (rejoin.go), the model's when its session ends or is about to (renew.go).
//
// # Around the calls
//
// A [Front] answers requests and runs the calls. What the calls share has owners that are safe by themselves: registry
// knows those that live, quota what callers and keys may use, provider reaches the model's server, and carried begins
// and hangs up the calls that this server carries.
//
// # Sessions of the model
//
// A call outlives the sessions of its model. One that says when it ends (expires_at) is replaced at the first quiet in
// its last two minutes; one whose socket closes, breaks or is silent for 15 s, or that says session_expired, at once.
// The next session gets, in this order:
//
//   - one update that sets what was in force, then the updates that were not answered
//   - the conversation, as items with the ids that they have
//   - the events that were not answered
//   - the caller's sound that was no item yet
//
// renewal.renew (renew.go) does that. A model whose session was lost in the middle of an answer is asked to go on.
//
// The client sees only that what was running ends, as if the model had ended it. The model's sound cannot be given to
// the next session: it gets the words instead, also when the client cuts them later. If the next session refuses the
// voice setting, it is left out; refused items are told as text. Without another session for 15 s, or when a fourth is
// lost within a minute, the call ends. Limits and order are in renew.go, silence is in socket.go, and what is
// remembered is in package recall. The next call of the caller is told of one that ended without their will: see
// [Broken].
//
// # Speech into the voice
//
// A client that lowers the sound while its person speaks into it (?lowers=1) hears murmurs to their end: what goes on,
// has other words, or has none 2.5 s after it, cuts the sound. The call decides that (yield.go), if the session says
// interrupt_response: false: the model would stop what it still makes at the first murmur. The call cancels the
// response, and tells who plays it to stop: a WebRTC leg or a page on a WebSocket (handoff.cut), or the provider. Where
// that field is not so, and for every other client, the voice stops at once.
//
// # Calls of the provider
//
// [Front.ServeAttach] joins a call that the provider carries, by a second socket on its session (a sideband): the same
// Call, with nobody on the client's leg. Nothing can be hidden there. The session's instructions, transcription and
// other tools stay; our tools are added, put back when its client sets its own, and removed when we leave. We never
// hang up the call itself. If its client detects turns itself (turn_detection null), a later result waits for the next
// call. An update carries the whole list of tools and no version: if another writer sends back an older list with ours
// in it, our older tools are in force until we send again. One that sends its own tools alone loses none.
//
// A client that needs no masking may have its offer sent on to the provider, where that is configured (direct.go): the
// sound goes between those two, and we join in the same way, from the first moment. Such a call is ours: we began it
// with our tools and instructions, and hang it up when it ends here. It cannot be rejoined, as the provider ends it
// with its client's connection. What is typed comes by [Front.Say]: only so does it count as the caller's.
//
// What is known of OpenAI's side, and from where:
//
//   - The address is that of a new session with ?call_id=, the key is one of the project, and the socket takes and
//     gives events as any socket of the session does (guide "Webhooks and server-side controls").
//   - A call that is not there gives 404 call_id_not_found, after seconds (community.openai.com 1396002).
//   - The socket begins without a session.created (pydantic-ai #6676).
//   - It may stay open when the caller has gone (openai-agents-js #684). So when nothing was seen of the caller for
//     five minutes we dial the call once more, and leave it if the provider does not know it any more. Else our part
//     ends after an hour, when the minutes of the day are used up, or by DELETE.
//
// Inworld has the same addresses. Two things are assumed. First, output_audio_buffer.started, stopped and cleared reach
// this socket as they reach the peer; without them, sound is taken to last as long as its transcript. Second, close
// code 1000 is the end of the call; after any other close the call is dialled again, until that gives 404.
//
// # Failure
//
// Text is never dropped: if one end cannot keep up, the call ends with a reason. Every function call of the voice model
// gets one output, also when the call ends. We handle the errors that our events cause; the client sees only the errors
// of its own events, with its own ids.
package realtime
