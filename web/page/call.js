// One call at a time: the microphone, the line that carries its sound and events, and what is sent over it.

import * as api from "./api.js";
import { openMicrophone } from "./audio.js";
import { PeerLine } from "./line-peer.js";
import { SocketLine } from "./line-socket.js";
import { blocked, endedThere } from "./lines.js";
import { left } from "./one-call.js";
import { watchNetwork } from "./network.js";
import { away, outbox } from "./outbox.js";
import { watchTaken } from "./retake.js";
import { expired } from "./voice-errors.js";

const patience = 15_000; // for sound and events to come up
const measuring = 2000; // how often the connection is looked at
const asking = 1000; // how often it is asked meanwhile whether the call still lives
const interrupted = 6000; // how long a broken connection may mend itself
const another = 1000; // how long it may after the network has changed, where it cannot take the new way
const recent = 15_000; // a browser notices within this that the old way is gone
const longAway = 60_000; // who was away for longer is asked before a call begins anew
const endsWith = 2000; // an error that came so shortly before the end of the call is its reason
const retries = [0, 500, 2000, 4000, ...Array(14).fill(8000)]; // the call waits for two minutes

/** A random id of a conversation item. */
const itemId = () => "item_" + Array.from(crypto.getRandomValues(new Uint8Array(12)), (b) => b.toString(16).padStart(2, "0")).join("");

export class Call {
  #line = null;
  #bySocket = false; // the call goes over a WebSocket, and does to its end
  #blocked = false; // WebRTC does not get through on this network
  #direct = false; // the sound does not go through Switchboard: the call ends with its line
  // Typed, and not sent yet: it outlives a call that did not come up or was lost, and goes into the next one.
  #typed = outbox({
    send: (words) => this.#send(words),
    ready: () => this.state().call.phase === "live" && !this.state().away, // what is written on a line to nobody is lost
    sent: (id) => this.onSent(id),
    unsure: (id) => this.onUnsure(id),
    held: (ids) => this.onHeld(ids),
    refused: (words, error) => this.onRefused(words, error),
    final: (error) => !away(error) && error.status !== 404, // such a call: Switchboard comes back to it, or another takes its place
  });
  #mic = null; // MediaStream
  #id = "";
  #life = 0; // grows with each start and end; what belongs to an older life is dropped
  #timer = 0;
  #aborter = null;
  #why = null; // the newest error, { error, at }: it may be why the call ends
  #hurry = () => {}; // ends the wait for the next try to come back
  #restarting = false;
  #movedAt = -Infinity; // when the network changed last, by performance.now()
  #said = false; // something was said in this call before it came up
  #silent = false; // the voice model was told to write
  #gated = false; // the browser reads aloud: its own words must not come back through the microphone

  /**
   * state() gives the page's state, patch(change) changes its call, onEvent(e) gets the voice model's
   * events, onSent(id) hears that a typed line went out, onUnsure(id) that it may have, onHeld(ids) that lines have to wait, onRefused({ id, text }, error) that one never will,
   * onProblem(text, next, goOn): goOn(), or undefined, goes on with the call, onMic(stream | null), remote is the audio
   * element, input() the chosen microphone. written() tells whether a call without a microphone is answered in writing, at once, instead
   * of at the pace of speech. wishes() are the person's: { voice, speed, language, interrupt }. greeting() is the event that
   * begins a call in which nobody has said anything yet, or null. onStats(report) hears of the connection now and then.
   */
  constructor(parts) {
    Object.assign(this, parts);
    watchNetwork({ changed: () => this.#moved(), seen: () => this.#hurry(), woke: () => this.#woke() });
  }

  get idle() {
    return this.state().call.phase === "idle";
  }

  /** Starts a call; without the microphone it is a call by text. A refused microphone makes it one, too. */
  async start(withMic) {
    if (!this.idle) return;
    const life = ++this.#life;
    this.#said = this.unsent.length > 0;
    if (withMic) {
      this.patch({ phase: "asking" });
      await this.#openMic(life);
      if (life !== this.#life) return;
    } else {
      this.patch({ mic: "off", micReason: "" });
    }
    this.patch({ phase: "connecting" });
    try {
      await this.#connect(life);
      if (life === this.#life && !this.#said) this.#welcome();
    } catch (error) {
      if (life !== this.#life) return;
      this.leave(); // what did not come up here may be up there
      this.#finish();
      this.onProblem(error.message, error.next ?? "");
    }
  }

  /** What the next page needs to come back to this call; null: there is none to come back to. */
  get place() {
    return this.idle || !this.#id ? null : { id: this.#id, mic: Boolean(this.#mic), socket: this.#bySocket, direct: this.#direct };
  }

  /** Comes back to the call that the page before this one was in. */
  async rejoin({ id, mic, socket, direct }) {
    if (!this.idle) return;
    const life = ++this.#life;
    this.#bySocket = this.#blocked = Boolean(socket);
    this.#direct = Boolean(direct);
    this.#said = true; // it goes on
    this.patch({ phase: "reconnecting" });
    if (mic) await this.#openMic(life);
    if (life === this.#life) await this.#comeBack(life, id, false);
  }

  // The network may be another one: what is up takes the new way, and who waits to come back tries at once.
  #moved() {
    this.#movedAt = performance.now();
    this.#blocked = false;
    this.#hurry();
    if (!this.#line?.open) return;
    if (!this.#line.restart) this.#reconnect(this.#life);
    else if (!this.#direct) this.#restart();
    else if (this.state().call.phase === "reconnecting") this.#mend(this.#life);
  }

  // Waits for a broken connection to mend itself. One that does not go through Switchboard cannot take another way, so
  // little is waited for once the network has changed.
  #mend(life) {
    clearTimeout(this.#timer);
    const moved = this.#direct && performance.now() - this.#movedAt < recent;
    this.#timer = setTimeout(() => this.#reconnect(life), moved ? another : interrupted);
  }

  async #restart() {
    const line = this.#line;
    if (!line.restart || this.#direct || this.#restarting) return;
    this.#restarting = true;
    await line.restart(this.#id, this.#aborter.signal).catch(() => {});
    this.#restarting = false;
  }

  // The device slept in mid-call: nobody may be there, so the microphone stays closed until somebody says so.
  #woke() {
    const { place } = this;
    if (place?.mic) this.#ask(place);
  }

  #ask(place) {
    this.#finish();
    this.onProblem("You were away, so the microphone is off.", "The call waits for a moment; after that a new one goes on from it.", () => this.#goOn(place));
  }

  async #goOn({ id, mic, socket }) {
    if (!this.idle) return;
    const life = ++this.#life;
    this.#bySocket = socket;
    this.#said = true;
    this.patch({ phase: "reconnecting" });
    if (mic) await this.#openMic(life);
    if (life === this.#life) await this.#comeBack(life, id, true);
  }

  /** What was typed and waits to be sent: [{ id, text }]. */
  get unsent() {
    return this.#typed.unsent;
  }

  /** Ends the call; what waits to be sent is given up. Work goes on. Resolves when the other side was told. */
  async hangUp() {
    this.#typed.giveUp();
    if (this.idle) return;
    const id = this.#id;
    left(id);
    const line = this.#line;
    if (id) this.#line = null; // told first, then closed: else the call is gone before it is told
    this.#finish();
    if (id) await api.hangup(id).catch(() => {}).finally(() => line?.close()); // it is over here; there it ends by itself soon
  }

  /** Lets the voice model go, without waiting for an answer. */
  leave() {
    if (!this.#id) return;
    left(this.#id);
    api.hangup(this.#id).catch(() => {});
  }

  /** Ends what the voice is saying. Work goes on. */
  stopTalking() {
    if (this.state().call.phase !== "live") return;
    if (this.state().talk.responding) this.#write({ type: "response.cancel" });
    this.#write({ type: "output_audio_buffer.clear" });
  }

  /** An id for a line. */
  newId() {
    return itemId();
  }

  /** Says something by text, as the line with this id: now, or as soon as the call is up. */
  say(text, id) {
    const { speaking } = this.state().talk;
    if (speaking) this.stopTalking();
    this.#said = true;
    this.#typed.say({ id, text });
  }

  /** Gives a line up that was not sent; false: it is on its way. */
  takeBack(id) {
    return this.#typed.takeBack(id);
  }

  /** Opens the microphone of a call that has none, or another one. */
  async useMicrophone() {
    await this.#openMic(this.#life);
    if (this.#mic && this.state().call.phase === "live") this.#configure(); // from now on the voice talks
    const track = this.#mic?.getAudioTracks()[0] ?? null;
    await this.#line?.setTrack(track);
  }

  /** Brings the microphone in line with mute, push-to-talk and reading aloud. */
  gate() {
    const { call, mode } = this.state();
    for (const track of this.#mic?.getAudioTracks() ?? []) {
      track.enabled = !call.muted && (mode === "open" || call.held) && !this.#gated;
    }
  }

  /** Closes the microphone while the browser itself talks. */
  gateForSpeech(on) {
    this.#gated = on;
    this.gate();
  }

  async #openMic(life) {
    this.patch({ mic: "asking", micReason: "" });
    try {
      const stream = await openMicrophone(this.input());
      if (life !== this.#life) {
        stop(stream);
        return;
      }
      this.#keepMic(stream);
    } catch (error) {
      if (life === this.#life) this.patch({ mic: this.#mic ? "on" : "refused", micReason: error.message });
    }
  }

  #keepMic(stream) {
    stop(this.#mic);
    this.#mic = stream;
    stream.getAudioTracks()[0].onended = () => this.#micLost(stream);
    watchTaken(stream, {
      mine: () => stream === this.#mic,
      told: (taken) => this.patch({ mic: taken ? "taken" : "on" }),
      open: () => openMicrophone(this.input()),
      use: (another) => {
        this.#keepMic(another);
        return this.#line?.setTrack(another.getAudioTracks()[0]);
      },
    });
    this.patch({ mic: "on" });
    this.onMic(stream);
    this.gate();
  }

  #micLost(stream) {
    if (stream !== this.#mic) return;
    this.#mic = null;
    this.onMic(null);
    this.patch({ mic: "refused", micReason: "it was unplugged." });
  }

  // Opens a call, or comes back to the one with this id. Where WebRTC does not get through, a call over a WebSocket
  // takes its place. That one stays where it is: another try of WebRTC costs seconds of silence, and one that succeeds
  // is a new call. The next call after a change of network tries it.
  async #connect(life, id) {
    if (!id) this.#bySocket = this.#blocked;
    if (!this.#bySocket) {
      try {
        await this.#bring(life, PeerLine, id);
        return;
      } catch (error) {
        if (!error.blocked || life !== this.#life) throw error;
      }
      this.leave();
      this.#drop();
      this.#bySocket = this.#blocked = true;
      id = "";
    }
    try {
      await this.#bring(life, SocketLine, id);
    } catch (error) {
      if (!id) this.#blocked = false; // WebRTC is answered with why there is no call
      throw error;
    }
  }

  async #bring(life, Line, id) {
    let up = false;
    const mine = (f) => (...a) => { if (life === this.#life && line === this.#line) f(...a); };
    const { interrupt, language } = this.wishes();
    const line = this.#line = new Line({
      event: mine((text) => this.#receive(text)),
      stream: mine((stream) => this.#play(stream)),
      state: mine((state) => { if (up) this.#watch(life, state); }), // before, who waits for it is told
      closed: mine(() => this.#closed()),
    }, `${interrupt ? "&lowers=1" : ""}${language ? `&language=${language}` : ""}`);
    this.#silent = Boolean(id); // it may have been told to write
    this.#aborter = new AbortController();
    const answer = await line.call(this.#mic?.getAudioTracks()[0] ?? null, id, this.#aborter.signal);
    if (life !== this.#life) {
      if (answer.id) api.hangup(answer.id).catch(() => {});
      return;
    }
    this.#id = answer.id;
    this.#direct = answer.direct;
    this.patch({ id: answer.id, telephone: answer.telephone, socket: this.#bySocket });
    await answer.start();
    const watch = setInterval(async () => { if (!(await api.lives(answer.id))) line.over(); }, asking);
    await within(line.opened, patience).finally(() => clearInterval(watch));
    up = true;
    if (life !== this.#life) return;
    this.patch({ phase: "live" });
    this.#configure();
    this.#measure(line);
  }

  // Tells how good the connection is, as long as it is this one.
  #measure(line) {
    const timer = setInterval(async () => {
      if (line !== this.#line) return clearInterval(timer);
      const report = await line.report();
      if (report && line === this.#line) this.onStats(report);
    }, measuring);
  }

  // Switchboard adds its tools by itself; the page only wants to see what was heard.
  #configure() {
    const { voice, speed, language } = this.wishes();
    const audio = { input: {
      transcription: { model: "gpt-4o-mini-transcribe", ...(language && { language }) },
      turn_detection: { type: "server_vad", interrupt_response: false }, // Switchboard cuts the voice, if at all: the model would at the first murmur
    } };
    if (voice || speed !== "1") audio.output = { ...(voice && { voice }), ...(speed !== "1" && { speed: Number(speed) }) };
    const byText = !this.#mic && this.state().call.mic === "off" && this.written(); // who was refused the microphone called to hear
    const how = byText ? ["text"] : this.#silent ? ["audio"] : null;
    this.#silent = how?.[0] === "text";
    this.#write({ type: "session.update", session: { type: "realtime", audio, ...(how && { output_modalities: how }) } });
    this.sendWaiting();
  }

  #play(stream) {
    this.remote.srcObject = stream;
    this.remote.play().catch((error) => {
      if (error.name === "NotAllowedError") this.onBlocked();
    });
  }

  #receive(data) {
    let event;
    try {
      event = JSON.parse(data);
    } catch {
      return; // not ours to judge: the voice model's events are objects
    }
    if (event.type === "error") this.#why = { error: event.error, at: Date.now() };
    this.onEvent(event);
  }

  #watch(life, state) {
    clearTimeout(this.#timer);
    if (state === "failed") this.#reconnect(life);
    if (state === "disconnected") {
      this.patch({ phase: "reconnecting" });
      this.#mend(life);
      this.#restart();
    }
    if (state === "connected" && this.#line.open) this.patch({ phase: "live" });
  }

  // The other side ended the call in good order. Where the sound does not go through Switchboard, so does the end of a
  // session of the voice model, and that of a Switchboard which was killed: another call takes its place.
  #closed() {
    if (this.state().call.phase !== "live") return;
    if (this.#direct && (this.#why?.error?.code === expired || this.state().feed === "lost")) return this.#reconnect(this.#life);
    const why = this.#why && Date.now() - this.#why.at < endsWith ? this.#why.error : null;
    this.#finish();
    this.onProblem(why?.message || endedThere().message, why?.next || "Call again when you like.");
  }

  async #reconnect(life) {
    if (life !== this.#life || this.idle) return;
    this.patch({ phase: "reconnecting", id: "" });
    await this.#comeBack(++this.#life, this.#id, true);
  }

  // Comes back to a call; where that is over, a new one takes its place, if anew says so. A call whose sound does not go
  // through Switchboard is over with its line: Switchboard begins another one in its place.
  async #comeBack(life, id, anew) {
    const since = Date.now();
    for (const wait of retries) {
      this.#drop();
      this.#id = id; // as long as it may be there
      await new Promise((resolve) => {
        this.#hurry = resolve;
        setTimeout(resolve, wait);
      });
      if (life !== this.#life) return;
      try {
        await this.#connect(life, id);
        return;
      } catch (error) {
        if (life !== this.#life) return;
        if (!id || error.status !== 404) continue; // the next try may do it
        if (!anew && !this.#direct) break;
        left(id);
        if (this.#mic && Date.now() - since >= longAway) return this.#ask({ ...this.place, id: "" });
        id = "";
      }
    }
    this.#finish();
    this.onProblem(anew ? "The call was lost." : "The call ended while the page was away.", "Call again when you like.");
  }

  /** Sends what waits, if there is a call and Switchboard. */
  sendWaiting() {
    this.#typed.flush();
  }

  // What is typed in a call whose sound does not go through Switchboard goes there all the same: a yes on the line
  // could be of any program.
  async #send({ id, text }) {
    if (this.#direct) return api.sayIn(this.#id, id, text);
    if (!this.#write({ type: "conversation.item.create", item: { id, type: "message", role: "user", content: [{ type: "input_text", text }] } })) throw endedThere();
    this.#write({ type: "response.create" });
  }

  // A call that comes back after a loss goes on; it does not begin anew.
  #welcome() {
    const event = this.greeting();
    if (event) this.#write(event);
  }

  // Reports whether an event went out; it does not once the line has closed under us.
  #write(event) {
    return this.#line?.write(event) ?? false;
  }

  #drop() {
    clearTimeout(this.#timer);
    this.#aborter?.abort();
    this.#line?.close();
    this.#line = this.#aborter = null;
    this.#id = "";
    this.#silent = false;
    this.#why = null;
    this.remote.srcObject = null;
  }

  #finish() {
    this.#life++;
    this.#drop();
    stop(this.#mic);
    this.#mic = null;
    this.onMic(null);
    const { mic } = this.state().call;
    this.patch({ phase: "idle", ...(mic === "refused" ? {} : { mic: "off", micReason: "" }) });
  }
}

const stop = (stream) => stream?.getTracks().forEach((t) => t.stop());

function within(promise, ms) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(blocked()), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
