// The call as the person handles it: calling, typing, hanging up, coming back to it. Words that were typed and could
// not be sent wait, and go once, as soon as there is a call again.

import * as api from "./api.js";
import { Call } from "./call.js";
import { greeting } from "./greeting.js";
import { freeCall, keepCall, keptCall } from "./keep-call.js";
import * as held from "./login.js";
import { mirror, onMirrored } from "./mirror.js";
import * as oneCall from "./one-call.js";
import { outbox } from "./outbox.js";
import { reader } from "./speech.js";
import { placeOf } from "./straight.js";
import { running } from "./state-work.js";
import { dispatch, get, note, toast } from "./store.js";
import { meterOf } from "./view-call.js";
import { connectionOf } from "./view-facts.js";
import { prefill, takeTyped } from "./view-talk.js";
import { voiceErrors } from "./voice-errors.js";

/** Makes the call of this page; `settings` are the person's, `remote` is the audio element that plays the voice. */
export function calling({ settings, remote }) {
  const aloud = reader((talking) => call.gateForSpeech(talking));
  let stopMeter = () => {};

  const call = new Call({
    remote,
    state: get,
    patch: (patch) => {
      if (patch.phase === "live" && get().call.phase === "reconnecting") mark();
      if (patch.phase === "live" && !["live", "reconnecting"].includes(get().call.phase)) dispatch({ type: "call-began", at: performance.now() });
      dispatch({ type: "call", patch });
    },
    onEvent: voiceEvent,
    onSent: (id) => dispatch({ type: "delivery", id, delivery: "sent" }),
    onUnsure, onHeld,
    onRefused: notSent,
    onProblem: (text, next, goOn) => {
      note(text);
      toast(text, goOn ? { next, tone: "info", stays: true, action: { label: "Go on", run: goOn } } : { next });
    },
    onBlocked: () => toast("Your browser holds the sound back.", { tone: "info", action: { label: "Play the voice", run: () => remote.play().catch(() => {}) } }),
    onMic: (stream) => {
      stopMeter();
      stopMeter = meterOf(stream);
    },
    input: () => settings.input,
    written: () => get().voice.simulated || !settings.play,
    wishes: () => settings,
    greeting: () => greeting(get().work, settings.language || get().voice?.language),
    onStats: (report) => {
      const found = connectionOf(report);
      if (found) dispatch({ type: "connection", ...found });
    },
  });

  const past = outbox({ // the voice; Switchboard begins what has the same id once
    send: ({ id, text, to }) => api.give({ ...placeOf(to), prompt: text }, id),
    ready: () => !get().away,
    sent: (id) => dispatch({ type: "delivery", id, delivery: undefined }),
    unsure: onUnsure, held: onHeld, refused: notSent,
  });

  function onUnsure(id) {
    dispatch({ type: "delivery", id, delivery: "unsure" });
  }

  function onHeld(ids) {
    dispatch({ type: "held", ids });
  }

  function notSent(words, error) {
    backInBox([words]);
    toast(`Your words were not sent; they are back in the text box. ${error.message}`, { next: error.next });
  }

  onMirrored((event) => { if (call.idle) dispatch({ type: "mirrored", event }); });

  // Says for a moment that the call goes on over another connection, ours or that of the voice.
  let marked = 0;
  function mark() {
    clearTimeout(marked);
    dispatch({ type: "call", patch: { renewed: true } });
    marked = setTimeout(() => dispatch({ type: "call", patch: { renewed: false } }), 8000);
  }

  function voiceEvent(event) {
    if (event.type === "handoff.renewed") return mark();
    dispatch({ type: "voice", event, at: performance.now() });
    mirror(event);
    const { simulated } = get().voice;
    switch (event.type) {
      case "response.output_audio_transcript.done":
        if (simulated && settings.aloud && settings.play) aloud.say(event.transcript);
        break;
      case "response.output_text.done":
        if (settings.aloud && settings.play) aloud.say(event.text);
        break;
      case "input_audio_buffer.speech_started":
        aloud.stop();
        if (get().talk.speaking) lower();
        break;
      case "output_audio_buffer.started":
      case "output_audio_buffer.stopped":
        if (!get().talk.hearing) raise(); // or else somebody speaks into the next answer, too
        break;
      case "input_audio_buffer.speech_stopped":
        // While Switchboard is away nobody tells a "stop" from a murmur, so whatever was said may be one.
        if (remote.volume < 1 && get().feed === "lost") cut();
        raise();
        break;
      case "output_audio_buffer.cleared":
        raise();
        break;
      case "error": // of one that ends the call its end tells
        setTimeout(() => { if (!call.idle) voiceErrors(event.error, toast); }, 1000);
    }
  }

  // The voice is lowered while somebody speaks into it, and Switchboard cuts it if they go on. If that does not come
  // through, the page does.
  let lowered = 0;
  function lower() {
    clearTimeout(lowered);
    remote.volume = 0.25;
    lowered = setTimeout(() => {
      raise();
      cut();
    }, 2000);
  }
  function cut() {
    if (settings.interrupt && get().talk.speaking) call.stopTalking();
  }
  function raise() {
    clearTimeout(lowered);
    remote.volume = 1;
  }

  // Opens a call, unless one is held elsewhere: then it is offered to move it here and to do `then`.
  let looking = null;
  async function open(withMic, then) {
    if (!call.idle) return true;
    looking ??= oneCall.elsewhere().finally(() => { looking = null; });
    const others = await looking;
    if (!call.idle) return true;
    if (!others.length) {
      note("You called.");
      call.start(withMic).then(() => call.gate());
      return true;
    }
    const move = () => oneCall.take(others).then(then);
    toast("You are in a call in another window or on another device.", { next: "Two at once would talk over each other.", tone: "info", action: { label: "Move the call here", run: move } });
    return false;
  }

  const start = () => open(true, start);

  oneCall.onTaken((id) => {
    if (!id || get().call.id !== id) return;
    end("The call was moved to another window.");
  });

  // Gives up the call and what was not sent, which goes back into the box: it is not sent by whoever logs in next.
  function giveUp() {
    const unsent = [...call.unsent, ...past.unsent];
    past.giveUp();
    const told = call.hangUp();
    backInBox(unsent);
    return told;
  }

  // Ends the call. What was typed and not said goes back into the box.
  function end(...words) {
    aloud.stop();
    const { unsent } = call;
    call.hangUp();
    if (unsent.length) words.splice(1, 0, "Your words were not sent; they are back in the text box.");
    note(words.filter(Boolean).join(" "));
    backInBox(unsent);
  }

  // Takes lines out of the conversation and into the box, before what is typed there.
  function backInBox(lines) {
    dispatch({ type: "taken-back", ids: lines.map((w) => w.id) });
    if (lines.length) prefill(lines.map((w) => w.text).join("\n"));
  }

  function hangUp() {
    if (call.idle) return;
    end(["asking", "connecting"].includes(get().call.phase) ? "You stopped the call." : "You hung up.", running(get().work).length && "Work goes on; its result will be here.");
  }

  // Says something in the call, or gives it straight to the place that was chosen for it.
  async function say(text, to = "") {
    if (to) {
      const id = call.newId();
      dispatch({ type: "typed", id, text, to, at: performance.now() });
      return past.say({ id, text, to });
    }
    // While Switchboard is gone there is nobody to call: the words wait for it.
    if (!get().away && !(await open(false, () => say(takeTyped() || text)))) {
      prefill(text);
      return;
    }
    aloud.stop();
    const id = call.newId();
    dispatch({ type: "typed", id, text, at: performance.now() });
    call.say(text, id);
  }

  // Sends what waits, in a call by text where there is none, not even one to come back to.
  let recalled = Promise.resolve();
  async function sendWaiting() {
    past.flush();
    await recalled;
    if (call.unsent.length && call.idle) open(false, sendWaiting);
    else call.sendWaiting();
  }

  return {
    call, aloud, start, hangUp, giveUp, say, sendWaiting,
    /** Says a line anew of which it is not known whether it was heard. */
    again(entry) {
      dispatch({ type: "taken-back", ids: [entry.id] });
      say(entry.text, entry.to);
    },
    /** Takes a line that was not sent back into the box. One that is on its way stays: else it could be given twice. */
    takeBack(entry) {
      if ((entry.to ? past : call).takeBack(entry.id)) backInBox([entry]);
    },
    /** Lets lines wait that the page before this one could not send. */
    wait(entries) {
      for (const e of entries) if (e.delivery === "waiting") e.to ? past.say(e) : call.say(e.text, e.id);
    },
    quiet() {
      aloud.stop();
      call.stopTalking();
    },
    mute,
    /** Keeps the call for the page that comes next in this window; false: it cannot be. */
    keep() {
      const { call: { muted }, facts } = get();
      return call.place && keepCall({ ...call.place, of: held.mine()?.id, muted, began: Date.now() - (performance.now() - facts.began) });
    },
    /** Comes back to the call that the page before this one kept. */
    recall() {
      recalled = recall();
    },
  };

  async function recall() {
    const kept = keptCall(held.mine()?.id);
    if (!kept || !(await freeCall(kept.id)) || !call.idle || get().session !== "in") return;
    dispatch({ type: "call-began", at: performance.now() - (Date.now() - kept.began) });
    mute(kept.muted);
    call.rejoin(kept).then(() => call.gate());
  }

  function mute(muted) {
    dispatch({ type: "call", patch: { muted } });
    call.gate();
  }
}
