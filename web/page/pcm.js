// What runs in the sound thread of a call over a WebSocket: the microphone as PCM16 at another rate, and a player
// that knows what was heard.

const piece = 0.04; // seconds of the microphone in one message
const lead = 0.1; // seconds that wait before a response begins, or goes on after a gap
const most = 600; // seconds that wait to be heard at most; the newest is dropped
const reach = 16; // samples to either side that make one at the other rate

/** Posts the microphone as PCM16, little-endian, mono, at options.rate. */
class Capture extends AudioWorkletProcessor {
  #step; // samples in for each one out
  #cutoff; // of the low pass, as a share of the rate
  #past = new Float32Array(4 * reach); // what came last: the newest is last
  #at = 0; // of the next sample out, counted from the newest one in
  #out;
  #n = 0;

  constructor({ processorOptions: { rate } }) {
    super();
    this.#step = sampleRate / rate;
    this.#cutoff = Math.min(1, rate / sampleRate);
    this.#out = new Int16Array(rate * piece);
  }

  process([[sound]]) {
    for (const s of sound ?? []) {
      this.#past.copyWithin(0, 1);
      this.#past[this.#past.length - 1] = s;
      for (this.#at -= 1; this.#at <= 0; this.#at += this.#step) this.#put(this.#between(-this.#at));
    }
    return true;
  }

  // The sound `back` samples before the newest that has enough on both sides, by a windowed sinc.
  #between(back) {
    if (this.#step === 1) return this.#past[this.#past.length - 1];
    const centre = this.#past.length - 1 - reach - back;
    let sum = 0;
    for (let i = Math.ceil(centre - reach); i <= centre + reach; i++) {
      const x = i - centre;
      const sinc = x === 0 ? 1 : Math.sin(Math.PI * x * this.#cutoff) / (Math.PI * x * this.#cutoff);
      sum += this.#past[i] * sinc * this.#cutoff * (0.5 + 0.5 * Math.cos((Math.PI * x) / (reach + 1)));
    }
    return sum;
  }

  #put(s) {
    this.#out[this.#n++] = Math.max(-1, Math.min(1, s)) * 32767;
    if (this.#n < this.#out.length) return;
    this.port.postMessage(this.#out.buffer.slice(0));
    this.#n = 0;
  }
}

/**
 * Plays PCM16 of responses, one after the other. Takes { response, item, content, pcm }, { ended: response } when no
 * more of it comes, { clear }: true, or the responses. Posts { started } and { stopped } of a response, and after clear { cleared }: of each
 * response what was cut off, [{ item, content, ms }], ms of it heard.
 */
class Player extends AudioWorkletProcessor {
  #queue = []; // { response, clips: [{ item, content, pieces, heard }], left, ended, started, flowing }
  #waiting = 0; // samples in it

  constructor() {
    super();
    this.port.onmessage = ({ data }) => {
      if (data.clear) this.#clear((response) => data.clear === true || data.clear.includes(response));
      else if (data.ended) this.#queue.filter((s) => s.response === data.ended).forEach((s) => { s.ended = true; });
      else if (data.pcm) this.#add(data);
    };
  }

  #add({ response, item, content, pcm }) {
    const samples = new Int16Array(pcm, 0, pcm.byteLength >> 1);
    if (!samples.length || this.#waiting > most * sampleRate) return;
    let sound = this.#queue.find((s) => s.response === response);
    if (!sound) {
      for (const s of this.#queue) s.ended = true; // a response is heard to its end before the next one is
      this.#queue.push(sound = { response, clips: [], left: 0, ended: false, started: false, flowing: false });
    }
    let clip = sound.clips.at(-1);
    if (clip?.item !== item || clip.content !== content) sound.clips.push(clip = { item, content, pieces: [], heard: 0 });
    clip.pieces.push(samples);
    sound.left += samples.length;
    this.#waiting += samples.length;
  }

  process(_, [[out]]) {
    for (let n = 0; n < out.length;) {
      const sound = this.#queue[0];
      if (!sound) break;
      const enough = sound.left >= (sound.ended || sound.flowing ? 1 : lead * sampleRate);
      if (!enough) {
        sound.flowing = false;
        if (!sound.ended) break; // it comes slower than it sounds
        this.#queue.shift();
        if (sound.started) this.port.postMessage({ stopped: sound.response });
        continue;
      }
      sound.flowing = true;
      if (!sound.started) this.port.postMessage({ started: sound.response });
      sound.started = true;
      n += this.#take(sound, out, n);
    }
    return true;
  }

  // Puts sound into a frame from n on; returns how many samples.
  #take(sound, out, n) {
    while (!sound.clips[0].pieces.length && sound.clips.length > 1) sound.clips.shift();
    const { pieces } = sound.clips[0];
    const size = Math.min(pieces[0].length, out.length - n);
    for (let i = 0; i < size; i++) out[n + i] = pieces[0][i] / 32768;
    pieces[0] = pieces[0].subarray(size);
    if (!pieces[0].length) pieces.shift();
    sound.clips[0].heard += size;
    sound.left -= size;
    this.#waiting -= size;
    return size;
  }

  #clear(goes) {
    const cleared = this.#queue.filter((s) => goes(s.response)).map(({ response, ended, started, clips }) => ({
      response, ended, sounded: started,
      // A clip of which nothing is left may still be longer at the voice model, if it is the last one.
      clips: clips.filter((c, i) => c.pieces.length || (i === clips.length - 1 && !ended)).map(({ item, content, heard }) => ({ item, content, ms: (heard / sampleRate) * 1000 })),
    }));
    this.#queue = this.#queue.filter((s) => !goes(s.response));
    this.#waiting = this.#queue.reduce((n, s) => n + s.left, 0);
    this.port.postMessage({ cleared });
  }
}

registerProcessor("capture", Capture);
registerProcessor("player", Player);
