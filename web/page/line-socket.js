// The line of a call over one WebSocket, for networks that let nothing but HTTPS through: sound as PCM16 at 24 kHz
// in events. What WebRTC does by itself is done here: the end of speech that the caller interrupts is dropped, and
// the voice model is told how much of it was heard.

import * as api from "./api.js";
import { blocked, endedThere } from "./lines.js";

const rate = 24_000;
const mostUnsent = 256 << 10; // bytes: more than four seconds of sound; what is said meanwhile is lost
const cuts = "page_cut_"; // ids of our truncations begin so
const away = [1001, 1005, 1006]; // close codes of a connection that was lost

/** A line, with the same parts as a PeerLine. */
export class SocketLine {
  #on;
  #socket = null;
  #opening = Promise.withResolvers();
  #named = Promise.withResolvers();
  #ears = new AudioContext(); // at the microphone's own rate: not every browser hears it at another
  #mouth = new AudioContext({ sampleRate: rate });
  #stream = this.#mouth.createMediaStreamDestination();
  #source = null; // of the microphone
  #capture = null;
  #player = null;
  #patient = false; // the caller's speech does not interrupt
  #muted = new Set(); // responses that were cut off while being made: what still comes is dropped
  #cut = 0;
  #closed = false;
  #query;

  constructor(on, query) {
    this.#on = on;
    this.#query = query;
    this.#opening.promise.catch(() => {});
    this.#named.promise.catch(() => {});
    for (const gesture of ["pointerdown", "keydown"]) addEventListener(gesture, this.#resume);
  }

  get opened() {
    return this.#opening.promise;
  }

  get open() {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  async call(track, id, signal) {
    await Promise.all([this.#ears, this.#mouth].map((c) => c.audioWorklet.addModule(new URL(document.querySelector("meta[name=worklet]").content, document.baseURI))));
    this.#player = new AudioWorkletNode(this.#mouth, "player", { numberOfInputs: 0 });
    this.#player.port.onmessage = ({ data }) => this.#played(data);
    this.#player.connect(this.#stream);
    this.#capture = new AudioWorkletNode(this.#ears, "capture", { processorOptions: { rate } });
    this.#capture.port.onmessage = ({ data }) => this.#hear(data);
    this.#capture.connect(this.#ears.destination); // it is silent there, and runs
    await this.setTrack(track);
    const token = await api.token();
    if (signal.aborted || this.#closed) throw signal.reason ?? endedThere();
    const place = new URL(`v1/realtime?${id ? `call_id=${encodeURIComponent(id)}&rejoin=1` : "rejoin=1&events=handoff"}${this.#query}`, location.href);
    place.protocol = place.protocol.replace("http", "ws");
    const socket = this.#socket = new WebSocket(place, ["realtime", `openai-insecure-api-key.${token}`]);
    if (id) socket.onopen = () => this.#named.resolve(id);
    socket.onmessage = ({ data }) => this.#receive(data);
    socket.onclose = ({ code }) => this.#gone(code);
    const name = await this.#named.promise.catch(async (error) => {
      throw id && !(await api.lives(id)) ? Object.assign(endedThere(), { status: 404 }) : error;
    });
    return { id: name, direct: false, telephone: false, start: async () => this.#start() };
  }

  #start() {
    this.#resume();
    this.#on.stream(this.#stream.stream);
    this.#opening.resolve();
  }

  over() {
    this.#opening.reject(endedThere());
  }

  async setTrack(track) {
    this.#source?.disconnect();
    this.#source = track && this.#ears.createMediaStreamSource(new MediaStream([track]));
    this.#source?.connect(this.#capture);
  }

  write(event) {
    if (!this.open) return false;
    if (event.type === "output_audio_buffer.clear") this.#player.port.postMessage({ clear: true }); // it is played here
    else this.#socket.send(JSON.stringify(event));
    return true;
  }

  async report() {
    return null;
  }

  close() {
    this.#closed = true;
    this.#named.reject(endedThere());
    for (const gesture of ["pointerdown", "keydown"]) removeEventListener(gesture, this.#resume);
    this.#socket?.close();
    for (const c of [this.#ears, this.#mouth]) if (c.state !== "closed") c.close().catch(() => {});
  }

  // A browser lets nothing sound before the page was touched.
  #resume = () => {
    for (const c of [this.#ears, this.#mouth]) c.resume().catch(() => {});
  };

  #gone(code) {
    if (this.#closed) return;
    this.#named.reject(blocked());
    this.over();
    if (away.includes(code)) this.#on.state("failed");
    else this.#on.closed();
  }

  // Sends what the microphone heard, unless the network has not taken what came before.
  #hear(pcm) {
    if (this.open && this.#source && this.#socket.bufferedAmount < mostUnsent) this.#socket.send(`{"type":"input_audio_buffer.append","audio":"${new Uint8Array(pcm).toBase64?.() ?? base64(pcm)}"}`);
  }

  #receive(text) {
    let event;
    try {
      event = JSON.parse(text);
    } catch {
      return; // not ours to judge
    }
    switch (event.type) {
      case "handoff.call":
        return this.#named.resolve(event.call_id);
      case "handoff.cut":
        return this.#player.port.postMessage({ clear: event.response_ids });
      case "response.output_audio.delta": {
        const { response_id: response, item_id: item, content_index: content, delta } = event;
        const pcm = bytes(delta);
        if (!this.#muted.has(response)) this.#player.port.postMessage({ response, item, content, pcm }, [pcm]);
        return;
      }
      case "session.created":
      case "session.updated":
        this.#patient = event.session?.audio?.input?.turn_detection?.interrupt_response === false;
        break;
      case "response.done":
        this.#muted.delete(event.response?.id);
        this.#player.port.postMessage({ ended: event.response?.id });
        break;
      case "input_audio_buffer.speech_started":
        if (!this.#patient) this.#player.port.postMessage({ clear: true });
        break;
      case "error":
        if (event.error?.event_id?.startsWith(cuts)) return; // the item is gone, which is nobody's concern
    }
    this.#on.event(text);
  }

  // What the player tells: that a response began or stopped to sound, or how much of what it dropped was heard.
  #played({ started, stopped, cleared }) {
    const late = (this.#mouth.outputLatency || 0) * 1000; // it has left the player, and was not heard yet
    if (started) this.#tell("started", started);
    if (stopped) this.#tell("stopped", stopped);
    for (const { response, ended, sounded, clips } of cleared ?? []) {
      if (!ended) this.#muted.add(response);
      for (const { item, content, ms } of clips) {
        this.write({ type: "conversation.item.truncate", event_id: cuts + ++this.#cut, item_id: item, content_index: content, audio_end_ms: Math.max(0, Math.floor(ms - late)) });
      }
      if (sounded) this.#tell("cleared", response);
    }
  }

  #tell(what, response) {
    this.#on.event(JSON.stringify({ type: `output_audio_buffer.${what}`, response_id: response }));
  }
}

const base64 = (pcm) => btoa(String.fromCharCode(...new Uint8Array(pcm)));
const bytes = (text) => (Uint8Array.fromBase64?.(text) ?? Uint8Array.from(atob(text), (c) => c.charCodeAt(0))).buffer;
