// What the page says about states, in plain words. Pure.

import { ended, openQuestions, running } from "./state-work.js";

/** Joins names: "bigpc", "bigpc and mini", "bigpc, mini and box". */
export function names(list) {
  const all = [...new Set(list)];
  return all.length < 2 ? (all[0] ?? "") : `${all.slice(0, -1).join(", ")} and ${all.at(-1)}`;
}

/** What went wrong, and what to do next. */
export const problemWords = ({ message, next }) => (next ? `${message} ${next}` : message);

/** Writes some words as a sentence. */
export const sentence = (words) => (words ? words[0].toUpperCase() + words.slice(1) + (/[.!?…]$/.test(words) ? "" : ".") : "");

/**
 * The call in words: { text, detail, tone: idle | wait | live | talk | ask | warn }. During a call the detail fits one line
 * of a phone, so that nothing moves when it comes and goes.
 */
export function callWords(state) {
  const words = phaseWords(state);
  return state.call.phase === "live" && state.call.renewed && words.tone !== "warn" ? { ...words, detail: "Reconnected." } : words;
}

function phaseWords(state) {
  const { call, talk, work, mode } = state;
  const micOff = call.mic === "refused" ? `Microphone off: ${call.micReason}` : call.mic === "taken" ? "The device took the microphone; trying to have it back." : "";
  switch (call.phase) {
    case "idle":
      return { text: "Not in a call", detail: micOff || idleDetail(state), tone: "idle" };
    case "asking":
      return { text: "Waiting for the microphone", detail: "Your browser asks whether this page may listen.", tone: "wait" };
    case "connecting":
      return { text: "Connecting…", detail: micOff || "What you type now is said once it is up.", tone: "wait" };
    case "reconnecting":
      return { text: "Reconnecting…", detail: "The sound was lost for a moment.", tone: "warn" };
  }
  if (state.feed === "lost") return { text: "Reconnecting…", detail: "Switchboard is not answering.", tone: "warn" };
  const asks = openQuestions(work);
  const busy = running(work).filter((r) => !asks.some((q) => q.handoff === r.id));
  const detail = micOff || (talk.unclear ? "That could not be understood; say it again." : "");
  if (talk.hearing) return { text: "Listening", detail, tone: "talk" };
  if (talk.speaking) return { text: "Speaking", detail, tone: "talk" };
  if (talk.responding) return { text: "Thinking…", detail, tone: "live" };
  if (busy.length) return { text: `${they(busy, "is", "are")} working`, detail: detail || micDetail(call, mode, state.voice.simulated), tone: "live" };
  if (asks.length) return { text: `${they(asks, "waits", "wait")} for you`, detail: detail || micDetail(call, mode, state.voice.simulated), tone: "ask" };
  if (micOff) return { text: "In a call by text", detail, tone: "live" };
  if (call.mic === "off") return { text: "In a call by text", detail: "The microphone is off.", tone: "live" };
  if (call.muted) return { text: "Muted", detail: "The voice does not hear you.", tone: "live" };
  if (mode === "hold" && !call.held) return { text: "Ready", detail: "Hold Space or the button while you talk.", tone: "live" };
  if (state.voice.simulated) return { text: "Listening", detail: "It understands typed sentences only.", tone: "live" };
  return { text: "Listening", detail: "Just talk.", tone: "live" };
}

// The machines of some work, with a verb.
function they(list, one, many) {
  const servers = list.map((r) => r.server);
  return `${names(servers)} ${new Set(servers).size > 1 ? many : one}`;
}

// What is going on without a call; nobody knows while Switchboard is gone.
function idleDetail({ feed, work }) {
  if (feed === "lost") return "";
  const asks = openQuestions(work);
  const busy = running(work).filter((r) => !asks.some((q) => q.handoff === r.id));
  return [busy.length ? `${they(busy, "goes", "go")} on working.` : "", asks.length ? `${they(asks, "waits", "wait")} for you.` : ""].filter(Boolean).join(" ");
}

function micDetail(call, mode, simulated) {
  if (call.mic === "off") return "The microphone is off.";
  if (call.muted) return "You are muted.";
  if (simulated) return "You can go on with other things.";
  return mode === "hold" ? "Hold Space or the button while you talk." : "You can go on talking.";
}

/**
 * Where a piece of work stands: { text, tone: wait | busy | ask | good | bad | flat }. There are five words, Needs
 * you, Working, Waiting, Done and Failed, each with one mark by its tone, the same for work, machines and sessions;
 * what a person stopped is Stopped, what they declined is Declined, what ended with its agent's program is Crashed, and
 * Unclear is what was lost on the way. `seen`:
 * when Switchboard was heard last, in ms, while it is gone.
 */
export function workWords(record, waiting, stopping, seen) {
  if (!ended(record)) {
    if (seen) return { text: `Last seen ${ago(seen, Date.now())}`, tone: "wait" };
    if (stopping) return { text: "Stopping…", tone: "busy" };
    if (waiting) return { text: "Needs you", tone: "ask" };
    return record.waits ? { text: "Waiting", tone: "wait" } : { text: "Working", tone: "busy" };
  }
  if (record.paused) return { text: "Paused", tone: "wait" };
  return outcomeWords(record);
}

/** Whether a person, or nobody in time, said no to what work asked for last. */
const declined = ({ declined: told, answers }) => told ?? ["decline", "stop"].includes(answers?.at(-1)?.decision);

/**
 * How work ended: { text, tone }. What is done is not good where the tests that were run last failed, where nobody knows
 * how they ended, or where what it asked for was declined.
 */
export function outcomeWords(record) {
  const { outcome, tests, why } = record;
  if (record.crashed) return { text: "Crashed", tone: "bad" };
  switch (outcome) {
    case "result":
      if (why === "added") return { text: "Added", tone: "plain" }; // its words are part of other work
      if (declined(record)) return { text: "Declined", tone: "flat" };
      return tests === "failed" ? { text: "Tests fail", tone: "warn" } : { text: "Done", tone: tests === "unknown" ? "plain" : "good" };
    case "failed": return { text: "Failed", tone: "bad" };
    case "interrupted": return { text: "Stopped", tone: "flat" };
    case "cancelled": return { text: "Stopped", tone: "flat" };
    default: return { text: "Unclear", tone: "bad" };
  }
}

const why = {
  __proto__: null, named: "the session you named", continued: "continued", new: "new session", replaced: "new session, because the last one is gone",
  aside: "a side question, in a session that is not kept", copy: "a copy of the session you named", added: "given to the work that was running there", merged: "done together with somebody else's work there",
  watched: "watched; somebody else began it",
};
const waits = { __proto__: null, ours: "comes after your other work there", theirs: "comes after somebody else's work there" };
const watched = (record) => record.why === "watched" && (record.waits ? "watched; nothing runs there now" : record.outcome === "cancelled" ? "watched no longer" : "");

/** Why work went to its session, or what it comes after. */
export const placeWords = (record) =>
  watched(record) || (ended(record) ? (record.outcome === "cancelled" ? "it was not begun" : record.outcome === "unknown" ? "it is not known whether it ran" : "") : waits[record.waits]) || (record.from && `new session, with a summary of ${record.from.title ? `“${record.from.title}”` : "one"} from ${record.from.server}`) || why[record.why] || "";

/** The turn of work that waits with others, { at, of }; "": it waits alone. */
export const turnWords = ({ at, of }) => (of > 1 ? `${at} of ${of} in line` : "");

/** How a question can be answered but by the buttons and fields of its card. */
export function voiceWords(q, inCall) {
  if (q.voice) return `…or say ${q.words ? "it" : "yes or no"}${inCall ? "" : " in a call"}.`;
  if (q.words && !q.asks?.some((a) => a.secret)) return "Choose it here only; by voice it does not count.";
  if (q.words) return "Type it here only; a secret is never said aloud.";
  if ((q.decisions ?? []).includes("accept")) return "Tap only; a yes by voice does not count.";
  if (q.tap?.startsWith("this key")) return "This login may not allow it.";
  if (q.there) return `A yes counts only on the machine itself: ${q.there}.`;
  return q.decisions?.length ? "It can be allowed on the machine itself only." : "It can be answered on the machine itself only.";
}

/** A machine's health, and what it does. While Switchboard is gone, neither is known. */
export function healthWords(server, waits, works, feed) {
  if (feed === "lost") return { text: "Unknown", tone: "wait" };
  switch (server.health) {
    case "up":
      if (waits) return { text: "Needs you", tone: "ask" };
      if (server.problem) return { text: "Refuses work", tone: "warn" };
      return works || server.working?.length ? { text: "Working", tone: "busy" } : { text: "Ready", tone: "good" };
    case "connecting": return { text: "Connecting…", tone: "wait" };
    default: return { text: "Offline", tone: "bad" };
  }
}

/** What a session does, as one of the words of states: { text, tone }; undefined: nothing to tell. `ours`: what it waits for is asked here. */
export const sessionPill = (status, ours) => ({ running: { text: "Working", tone: "busy" }, waiting: ours ? { text: "Needs you", tone: "ask" } : { text: "Asks elsewhere", tone: "flat" } })[status];

export const sessionStatus = { __proto__: null, idle: "", running: "working", waiting: "waiting for an answer", unknown: "" };

const decisions = { accept: "Allow once", accept_for_session: "Allow for this session", decline: "Decline", stop: "Stop the work" };
const ofCopies = { accept: "Make a copy", decline: "No copy" };

/** What a button of a question says. */
export const decisionWords = (q, decision) => (q.kind === "copy" && ofCopies[decision]) || (q.url && decision === "accept" && "I opened it") || decisions[decision];

const risks = {
  __proto__: null, low: ["Low risk", "it only reads, in its workspace"], medium: ["Medium risk", "it builds, edits, fetches or pushes, as is usual"],
  high: ["High risk", "it is not known as harmless: look at it closely"],
};

/** How risky it is to allow something: [in two words, why], or undefined. */
export const riskWords = (q) => risks[q.risk];

/** When a question is given up. */
export function givesUpWords(q, now) {
  const at = Date.parse(q.gives_up);
  if (!(at > now)) return "";
  const minutes = Math.round((at - now) / 60_000);
  return `Declined ${minutes < 1 ? "in less than a minute" : minutes === 1 ? "in a minute" : minutes < 120 ? `in ${minutes} minutes` : `in ${Math.round(minutes / 60)} hours`} if nobody answers.`;
}

/** How much needs the person, in words. */
export const needCountWords = (count) => (count === 1 ? "1 needs you" : `${count} need you`);

// A command in a shell of its own, as agents write it: one word behind -c, in single quotes, in double ones that mean
// nothing more, or in none.
const shell = /^(?:\/(?:usr\/)?bin\/)?(?:ba|z|da)?sh -l?c (?:'([^']*)'|"([^"\\$`!]*)"|([\w./=:@%+,-]+))$/;

/** A command without the shell that an agent wraps around it. What is not surely one is left as it is. */
export function unwrapped(command) {
  const [, single, double, bare] = shell.exec(command) ?? [];
  return single ?? double ?? bare ?? command;
}

// What a command runs, in one or two words: "git push", "make", "go test". "": it cannot be told in so few.
const plainWord = /^[a-z][\w.+-]{0,23}$/i;
function programOf(command) {
  if (/[\n;&|<>$`(){}]/.test(command)) return "";
  const [program, verb = ""] = command.trim().split(/\s+/);
  if (!plainWord.test(program)) return "";
  return plainWord.test(verb) && !verb.includes(".") ? `${program} ${verb}` : program;
}

/** The heading of a question. */
export function questionWords(q) {
  switch (q.kind) {
    case "command": return `${q.server} asks to run ${programOf(unwrapped(q.command ?? "")) || "a command"}`;
    case "file_change": return `${q.server} asks to change files`;
    case "permissions": return `${q.server} asks for more permissions`;
    case "copy": return `Go on in a copy on ${q.server}?`;
    default: return `${q.server} asks you something`;
  }
}

// Letters that nobody sees, or that turn the order of others round: a command must read as it runs.
const unseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u00a0\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0]|[\u{e0000}-\u{e0fff}]/gu;

/** Writes letters that cannot be seen as their names. */
export const visible = (text) => text.replace(unseen, (c) => `⟨U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);

/** How long ago, in words. Both are milliseconds. */
export function ago(then, now) {
  const seconds = Math.max(0, Math.round((now - then) / 1000));
  const say = (n, unit) => `${n} ${unit}${n === 1 ? "" : "s"} ago`;
  if (seconds < 10) return "just now";
  if (seconds < 60) return say(seconds, "second");
  if (seconds < 3600) return say(Math.floor(seconds / 60), "minute");
  if (seconds < 86400) return say(Math.floor(seconds / 3600), "hour");
  return say(Math.floor(seconds / 86400), "day");
}

/** How long ago or how long, in one word: "48s", "7m", "3h", "2d". Both are milliseconds. */
export function briefly(from, to) {
  const seconds = Math.max(0, Math.round((to - from) / 1000));
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
  return seconds < 86400 ? `${Math.floor(seconds / 3600)}h` : `${Math.floor(seconds / 86400)}d`;
}

/** What a step of work is, on one line. */
export function stepWords({ kind, text = "" }) {
  const line = text.trim().split("\n", 1)[0].slice(0, 200);
  return { command: `$ ${line}`, file_change: `edits ${line}` }[kind] ?? line;
}

/** In how long, in words. Both are milliseconds. */
export function until(then, now) {
  const seconds = Math.round((then - now) / 1000);
  return seconds < 2 ? "now" : seconds < 90 ? `in ${seconds} seconds` : `in ${Math.round(seconds / 60)} minutes`;
}

const sandboxes = { __proto__: null, "read-only": "read, and change nothing", "workspace-write": "read, and change files in their directory", "danger-full-access": "do everything, without a sandbox" };
const approvals = { __proto__: null, untrusted: "before everything that is not known to be harmless", "on-request": "when they want more than they may", never: "never" };
const limits = { __proto__: null, none: "nothing", low: "what only reads", medium: "edits, installs, ordinary pushes" };

/** What a session may do. */
export const sandboxWords = (sandbox) => sandboxes[sandbox] ?? (sandbox || "what the machine's own settings let them");
/** When a session asks. */
export const approvalWords = (approval) => approvals[approval] ?? (approval || "when the machine's own settings say so");
/** What can be allowed by voice. */
export const voiceLimitWords = (level) => limits[level] ?? level;

const answers = { __proto__: null, accept: "Allowed", accept_for_session: "Allowed for the session", decline: "Declined", stop: "Declined, and stopped" };
const ways = { __proto__: null, voice: "by voice", typed: "by a typed answer", page: "on the page", terminal: "at your own terminal", api: "by a program", nobody: "because nobody answered" };

const letIn = { __proto__: null, let_in: "Let in", keep_out: "Did not let in", disconnect: "Disconnected" };

/** A decision that was written down. */
export function decidedWords({ decision, server, risk, by, client }, title) {
  if (letIn[decision]) return `${letIn[decision]} the program at ${client.replace(/^https:\/\/([^/]*).*$/, "$1")} ${by === "misuse" ? "because what it was given was used twice or wrongly" : ways[by] ?? by}.`;
  return `${answers[decision] ?? "Answered"} ${ways[by] ?? by} on ${server}${title ? ` in ${title}` : ""}${risk && answers[decision] ? `, ${risk} risk` : ""}.`; // an answer in words is of no risk
}

/** How long something took. */
export function took(from, to) {
  const seconds = Math.max(0, Math.round((to - from) / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${seconds % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

const shortWait = 2000; // ms, which nobody calls a wait

/** When work began and how long it took, and apart from that how long it waited before. `now` is milliseconds. */
export function timesWords(r, now) {
  if (r.paused) return "";
  const [asked, began, ended] = [r.created_at, r.started_at ?? r.created_at, r.ended_at].map((at) => at && Date.parse(at));
  const waited = began - asked > shortWait ? `waited ${took(asked, began)}` : "";
  if (ended) return [`${ago(ended, now)}, took ${took(began, ended)}`, waited].filter(Boolean).join(", ");
  return r.waits ? `asked ${ago(asked, now)}` : [`began ${ago(began, now)}`, waited].filter(Boolean).join(", ");
}

/** Which piece of work, in a few words that no other one has: "run the tests on bigpc". */
export const whichWords = ({ prompt, server }) => `${(prompt.trim().split("\n", 1)[0] ?? "").slice(0, 80)} on ${server}`;

/** Why a microphone cannot be used. `error` has a DOMException's name. */
export function micWords(error, secure) {
  if (!secure) return "this address is not secure; use https or localhost.";
  switch (error?.name) {
    case "NotAllowedError": return "this page may not use it. Allow it in the address bar.";
    case "NotFoundError": case "OverconstrainedError": return "none was found.";
    case "NotReadableError": return "another program uses it.";
    default: return "it could not be started.";
  }
}

/** Which program asked for work, by the name that it gives itself; "" for a person. */
export const askedBy = (r) => (r.client ? `asked by ${r.client.replace(/-mcp-client$/, "")}` : "");

/** Who asked for a piece of work and what came of it, in a few words each: its tests, its edits, its tokens. */
export function workFacts(r) {
  const { tests, edits, usage } = r;
  const tokens = (usage?.input ?? 0) + (usage?.output ?? 0);
  return [
    askedBy(r),
    { failed: "tests fail", passed: "tests pass" }[tests],
    { complete: "goal reached", blocked: "goal blocked", paused: "goal paused", limited: "goal out of budget", left: "no goal" }[r.goal],
    edits && `${edits.files} ${edits.files === 1 ? "file" : "files"} edited, +${edits.added} −${edits.removed}`,
    tokens > 0 && `${tokens < 1000 ? tokens : `${(tokens / 1000).toFixed(tokens < 10_000 ? 1 : 0)}k`} tokens`,
  ];
}

/** A moment here, with its offset: "2026-11-25T21:03:07+01:00". */
export function localMoment(at) {
  const d = new Date(at);
  const offset = -d.getTimezoneOffset();
  const two = (n) => String(Math.floor(Math.abs(n))).padStart(2, "0");
  return `${new Date(d.getTime() + offset * 60_000).toISOString().slice(0, 19)}${offset < 0 ? "-" : "+"}${two(offset / 60)}:${two(offset % 60)}`;
}

/** The time of day, the same everywhere: "21:03". */
export const clockWords = (at) => new Date(at).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

/** Who answered a question of an agent, how and when, in words. */
export function answerWords({ kind, text, command, decision, by, at }) {
  const did = { accept: "Allowed", accept_for_session: "Allowed for the session", decline: "Declined", stop: "Declined and stopped", words: "Answered" }[decision] ?? "Answered or withdrawn";
  const how = { voice: "by voice", typed: "by typing in a call", page: "on the page", api: "through the API", nobody: "because nobody answered", elsewhere: "elsewhere" }[by] ?? "";
  const what = command || text || { file_change: "an edit" }[kind] || "a question";
  return `${did} ${how} at ${clockWords(at)}: ${what.length > 120 ? `${what.slice(0, 119)}…` : what}`;
}
