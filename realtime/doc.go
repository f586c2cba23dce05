// Package realtime is the voice front: an endpoint compatible with OpenAI's Realtime API, the client and model legs of
// a call, the floor that lets one response run at a time, and the masking that keeps our tools out of the client's
// sight. It hands completed function calls to a router and gives the router's answers and messages to the voice model.
//
// It must not know servers, threads or turns: the same router would serve other voice fronts, and the same front
// another router. The decisions of a call are pure packages: floor (who may make the model speak), filter (what the
// client sees) and recall (what the next session of the model must know). Package rtc carries browsers over WebRTC.
// WebSockets are carried here.
//
// # Concurrency
//
// A call ([Call]) has one lock for all of its state. Nobody waits while holding it: events to be sent are queued. The
// goroutine that reads an event from a socket handles it under the lock, then writes what is queued for the other side,
// as far as that side takes it without waiting. Waking another goroutine would cost more than all other work on a
// frame. The rest is written by a goroutine that ends when the queue is empty. One loop in each call notices the ends
// of legs and sets the timer of the alarms; alarms are handled in the timer's own goroutine. [Front.Run] owns the
// goroutines of all calls and returns after the last call has ended. The floor, the filter and the estimates of what
// was heard are pure: they are given the time as a value.
//
// # Inside a call
//
// An ask is a response.create, of the client or of ours. An utterance is what the router wants the model to say or
// know.
//
// The state of a call has five owners, all guarded by its lock. legs are the two ends, and further sockets of the same
// client. saying is what the model is made to say: utterances, asks, the floor. hearing is what the caller hears and
// says: playback, speech, signs that the client is there. session is how the client's session begins, is configured,
// and continues when the client comes back. renewal is how the call continues when the model's session ends. Each owner
// uses those named before it, and saying reports to hearing which utterances the caller was given. All share a core:
// alarms, reports for the router, counters, the end of the call. The call passes events to the owners
// (events_client.go, events_model.go), and does what needs all of them.
//
// Either leg can be replaced under the lock while the call goes on. Only legs keeps a reference to a leg: events of a
// replaced leg are dropped, its end does not end the call, and the loop waits for the end of the new one. The client's
// leg is replaced when the client comes back (rejoin.go), the model's when its session ends or is about to (renew.go).
//
// # Around the calls
//
// A [Front] answers requests and runs the calls. What the calls share has owners that are safe for concurrent use:
// registry knows the calls that are open, quota counts what callers and keys use, provider reaches the model's server,
// and carried begins and hangs up the calls that this server carries.
//
// # Sessions of the model
//
// A call outlives the sessions of its model. A session that announces its end (expires_at) is replaced at the first
// quiet moment of its last two minutes. A session whose socket closes, breaks or is silent for 15 s, or that reports
// session_expired, is replaced at once. The next session gets, in this order:
//
//   - one session.update with the settings in force, then the updates that were not answered
//   - the conversation, as items with the ids that they have
//   - the other events that were not answered
//   - the caller's sound that had not become an item
//
// renewal.renew (renew.go) does that. A model whose session was lost in the middle of an answer is asked to go on.
//
// The client sees only that the running response ends, as if the model had ended it. The next session cannot be given
// the sound that the model made: it gets the transcript instead, and the client can still truncate that. If the next
// session refuses the voice setting, the setting is left out; the items that it refuses are given to it as text. The
// call ends if there is no other session within 15 s, or if a fourth one is lost within a minute. Limits and order are
// in renew.go, silence is noticed in socket.go, and package recall holds what is remembered. When a call ends against
// the caller's will, their next call is told of it: see [Broken].
//
// # Speech into the voice
//
// A client that lowers the sound itself while its person speaks into the model's voice (?lowers=1) keeps the voice
// through a murmur such as "mhm". The caller's speech cuts the voice when it goes on for 900 ms, when its transcript is
// more than a backchannel, or when it has no transcript 2.5 s after its end. The call decides this (yield.go), and only
// if the session has interrupt_response: false, because otherwise the model would stop its response at the first
// murmur. To cut the voice, the call cancels the response and tells the player of the sound to stop: a WebRTC leg, a
// page on a WebSocket (handoff.cut), or the provider. In every other session, and for every other client, the voice
// stops at once.
//
// # Calls of the provider
//
// [Front.ServeAttach] joins a call that the provider carries, by a second socket on its session (a sideband): the same
// Call, with nobody on the client's leg. Nothing can be hidden there. The session's instructions, transcription and
// other tools stay; our tools are added, put back when its client sets its own, and removed when we leave. We never
// hang up the call itself. If its client detects turns itself (turn_detection null), a later result waits for the next
// call. A session.update carries the whole list of tools and no version. So if another program sends back an older list
// that has our tools in it, those older tools are in force until we send again. A program that sends its own tools
// alone does no harm.
//
// A client that needs no masking may have its offer sent on to the provider, where that is configured (direct.go): the
// sound goes between those two, and we join in the same way, from the first moment. Such a call is ours: we began it
// with our tools and instructions, and hang it up when it ends here. It cannot be rejoined, as the provider ends it
// with its client's connection. What the caller types there comes by [Front.Say]: only then does it count as theirs.
//
// What is known of OpenAI's side, and from where:
//
//   - The address is that of a new session with ?call_id=, the key is one of the project, and the socket takes and
//     gives events as any socket of the session does (guide "Webhooks and server-side controls").
//   - A call that is not there gives 404 call_id_not_found, after seconds (community.openai.com 1396002).
//   - The socket begins without a session.created (pydantic-ai #6676).
//   - It may stay open when the caller has gone (openai-agents-js #684). So when there was no sign of the caller for
//     five minutes we dial the call once more, and leave it if the provider does not know it any more. Otherwise our
//     part ends after an hour, when the minutes of the day are used up, or by DELETE.
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
