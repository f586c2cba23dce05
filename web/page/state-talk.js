// The conversation: what the caller and the voice said, from the events of the voice model. Pure.

const keep = 400; // entries of a long conversation that stay on the page

export const talkStart = {
  entries: [], // { id, who: you | voice | note, text, state: heard | saying | done | cut, typed, response,
  // to: the place that typed words were given to past the voice, delivery } of what was typed: waiting: not sent; sent: nothing has answered yet; unsure: nothing will; else it arrived
  // held: it was tried, and has to wait
  hearing: false, // the caller speaks
  responding: false, // the voice model works on an answer
  speaking: false, // its sound plays
  unclear: false, // what the caller said last could not be understood
};

/** Returns the conversation after an action. */
export function reduceTalk(talk, action) {
  switch (action.type) {
    case "voice":
      return (handlers[action.event.type] ?? unchanged)(talk, action.event);
    case "mirrored":
      return mirrored(talk, reduceTalk(talk, { type: "voice", event: action.event }));
    case "typed":
      return add({ ...talk, unclear: false }, { id: action.id, who: "you", text: action.text, state: "done", typed: true, to: action.to, delivery: "waiting" });
    case "delivery":
      return patch(sentNow(talk, action), action.id, (e) => (e.delivery ? { delivery: action.delivery } : {})); // it may have arrived before that was known
    case "held":
      return action.ids.reduce((all, id) => patch(all, id, () => ({ held: true })), talk);
    case "taken-back":
      return action.ids.reduce(remove, talk);
    case "note":
      return add(talk, { id: action.id, who: "note", text: action.text, state: "done" });
    case "kept":
      return { ...talk, entries: [...action.entries.filter((e) => readable(e) && !talk.entries.some((known) => known.id === e.id)).map((e) => ({ ...e, recalled: true, delivery: lasting(e.delivery) })), ...talk.entries] };
    case "call-ended":
      return {
        ...talk, hearing: false, responding: false, speaking: false,
        entries: talk.entries.filter((e) => e.text).map((e) => (e.state === "saying" ? { ...e, state: "cut" } : e.delivery === "sent" ? { ...e, delivery: "unsure" } : e)),
      };
    default:
      return talk;
  }
}

const unchanged = (talk) => talk;

// What is said in another window: its lines alone, which that window keeps.
function mirrored(before, { entries }) {
  const known = new Set(before.entries.map((e) => e.id));
  return { ...before, entries: entries.map((e) => (known.has(e.id) ? e : { ...e, recalled: true })) };
}

// Where a line stands once the call in which it was sent is gone.
const lasting = (delivery) => ({ waiting: "waiting", sent: "unsure", unsure: "unsure" })[delivery];

function add(talk, entry, after) {
  if (talk.entries.some((e) => e.id === entry.id)) return moved(talk, entry.id, after);
  const entries = [...talk.entries];
  const at = after ? entries.findIndex((e) => e.id === after) : -1;
  entries.splice(at < 0 ? entries.length : at + 1, 0, entry);
  return { ...talk, entries: entries.slice(-keep) };
}

// What was typed stands in the conversation at once; if the voice spoke before it came there, it belongs below.
function moved(talk, id, after) {
  const at = talk.entries.findIndex((e) => e.id === id);
  const to = after ? talk.entries.findIndex((e) => e.id === after) : -1;
  if (to <= at) return talk;
  const entries = [...talk.entries];
  const [entry] = entries.splice(at, 1);
  entries.splice(to, 0, entry);
  return { ...talk, entries };
}

// What waited is said when it goes out: it belongs below what happened meanwhile, and above its answer.
function sentNow(talk, { id, delivery }) {
  const waited = delivery === "sent" && talk.entries.find((e) => e.id === id && e.delivery === "waiting");
  return waited ? { ...talk, entries: [...talk.entries.filter((e) => e !== waited), waited] } : talk;
}

function patch(talk, id, change) {
  const at = talk.entries.findIndex((e) => e.id === id);
  if (at < 0) return talk;
  const entries = [...talk.entries];
  entries[at] = { ...entries[at], ...change(entries[at]) };
  return { ...talk, entries };
}

const remove = (talk, id) => ({ ...talk, entries: talk.entries.filter((e) => e.id !== id) });

// An item of the conversation appeared. Only what somebody said is shown.
function itemAdded(talk, { item, previous_item_id: after }) {
  if (item?.type !== "message") return talk;
  const text = (item.content ?? []).map((c) => c.text ?? c.transcript ?? "").join("");
  if (item.role === "user") {
    const spoken = (item.content ?? []).some((c) => c.type === "input_audio");
    const known = add(talk, { id: item.id, who: "you", text, state: text || !spoken ? "done" : "heard", typed: !spoken }, after);
    return patch(known, item.id, (e) => (e.delivery ? { delivery: undefined } : {}));
  }
  if (item.role === "assistant") return add(talk, { id: item.id, who: "voice", text, state: "saying" }, after);
  return talk;
}

function itemDone(talk, event) {
  const { item } = event;
  if (item?.type !== "message") return talk;
  const next = itemAdded(talk, event);
  if (item.role !== "assistant") return next;
  const text = (item.content ?? []).map((c) => c.text ?? c.transcript ?? "").join("");
  return patch(next, item.id, (e) => ({ text: text || e.text, state: e.state === "cut" || item.status === "incomplete" ? "cut" : "done" }));
}

function said(talk, { item_id: id, response_id: response, delta = "" }) {
  const known = add(talk, { id, who: "voice", text: "", state: "saying" });
  return patch(known, id, (e) => ({ text: e.text + delta, response }));
}

function saidAll(talk, { item_id: id, response_id: response, transcript, text }) {
  const known = add(talk, { id, who: "voice", text: "", state: "saying" });
  return patch(known, id, (e) => ({ text: transcript ?? text ?? e.text, response, state: e.state === "cut" ? "cut" : "done" }));
}

function heard(talk, { item_id: id, delta = "" }) {
  const known = add(talk, { id, who: "you", text: "", state: "heard" });
  return patch(known, id, (e) => ({ text: e.text + delta }));
}

// What the microphone took for speech and was none leaves no line.
function heardAll(talk, { item_id: id, transcript = "" }) {
  if (!transcript.trim()) return remove(talk, id);
  const known = add(talk, { id, who: "you", text: "", state: "heard" });
  return patch(known, id, () => ({ text: transcript.trim(), state: "done" }));
}

function responseDone(talk, { response }) {
  const cancelled = response?.status === "cancelled";
  const items = new Set((response?.output ?? []).map((i) => i.id));
  const mine = (e) => e.who === "voice" && (items.has(e.id) || (response?.id && e.response === response.id));
  const entries = talk.entries
    .map((e) => (mine(e) && (cancelled || e.state === "saying") ? { ...e, state: cancelled ? "cut" : "done" } : e))
    .filter((e) => e.text || !mine(e));
  return { ...talk, responding: false, entries };
}

// About how much of a text was heard after so long: whole words, at the pace of speech. Nothing says it exactly.
const lettersPerSecond = 15;
function heardOf(text, ms) {
  const about = Math.round((ms / 1000) * lettersPerSecond);
  if (!(ms >= 0) || about >= text.length) return undefined;
  return Math.max(0, text.lastIndexOf(" ", about));
}

/** What of a conversation survives a reload of the page. */
export const toKeep = (talk) =>
  talk.entries.filter((e) => e.text).slice(-100).map(({ id, who, text, state, typed, heard, to, delivery }) => ({ id, who, text: delivery ? text : text.slice(0, 4000), state: state === "saying" || state === "heard" ? "cut" : state, typed, heard, to, delivery }));

const readable = (e) => typeof e?.id === "string" && typeof e.text === "string" && ["you", "voice", "note"].includes(e.who);

const handlers = {
  __proto__: null, // a name is only what is listed here
  "conversation.item.added": itemAdded,
  "conversation.item.created": itemAdded,
  "conversation.item.done": itemDone,
  "response.output_item.done": itemDone,
  "conversation.item.deleted": (talk, e) => remove(talk, e.item_id),
  "conversation.item.truncated": (talk, e) => patch(talk, e.item_id, ({ text }) => ({ state: "cut", heard: heardOf(text, e.audio_end_ms) })),
  "conversation.item.input_audio_transcription.delta": heard,
  "conversation.item.input_audio_transcription.completed": heardAll,
  "conversation.item.input_audio_transcription.failed": (talk, e) => ({ ...remove(talk, e.item_id), unclear: true }),
  "response.output_audio_transcript.delta": said,
  "response.output_audio_transcript.done": saidAll,
  "response.output_text.delta": said,
  "response.output_text.done": saidAll,
  "response.created": (talk) => ({ ...talk, responding: true }),
  "response.done": responseDone,
  "input_audio_buffer.speech_started": (talk) => ({ ...talk, hearing: true, unclear: false }),
  "input_audio_buffer.speech_stopped": (talk) => ({ ...talk, hearing: false }),
  "output_audio_buffer.started": (talk) => ({ ...talk, speaking: true }),
  "output_audio_buffer.stopped": (talk) => ({ ...talk, speaking: false }),
  "output_audio_buffer.cleared": (talk) => ({ ...talk, speaking: false }),
};
