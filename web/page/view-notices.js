// What must be noticed: a lost connection, messages, what needs the person, and the page's title.

import { byId, dress, h, keyed, setText, show } from "./dom.js";
import { ended, openQuestions } from "./state-work.js";
import { needCountWords, questionWords, workWords } from "./words.js";

const stay = 12_000; // ms, for a message
const stayToPress = 20_000; // with something to press

/**
 * Wires the notices; review() shows what needs the person, untoast(id) takes a message away, counted(state, count) hears how much
 * needs the person, sound(kind) plays one: ask, bad or good.
 */
export function noticesView({ review, untoast, counted, sound }) {
  const banner = byId("banner");
  const attention = byId("attention");
  const toasts = byId("toasts");
  const announce = announcer(sound);
  const count = h("strong", {});
  const what = h("span", { class: "attention-what" });
  attention.append(h("div", { class: "attention-box" }, h("p", {}, count, what), h("button", { class: "button small", type: "button", text: "Review", on: { click: review } })));
  document.addEventListener("keydown", (e) => {
    if (e.key === "Escape" && !e.defaultPrevented && !document.querySelector("dialog[open], :popover-open")) {
      const last = state?.toasts.at(-1);
      if (last) untoast(last.id);
    }
  });
  let state;

  return (now) => {
    state = now;
    const lost = state.feed === "lost" && "The connection to Switchboard is lost.";
    const unread = state.work.incomplete && "Work from before the restart cannot be read yet.";
    setText(banner, lost || unread ? `${lost || unread} Trying again…` : "");
    const asked = openQuestions(state.work);
    const first = asked.length ? questionWords(asked[0]) : "";
    show(attention, asked.length > 0);
    setText(count, needCountWords(asked.length));
    setText(what, first && ` · ${first}`);
    document.title = first ? `(${asked.length}) ${first} · Switchboard` : "Switchboard";
    counted(state, asked.length);
    keyed(toasts, state.toasts, (t) => t.id, (t) => toastCard(t, untoast));
    announce(state);
    brand(state);
  };
}

// Tells screen readers what a sighted person notices at once: a new question, work that ended.
function announcer(sound) {
  const urgent = byId("urgent");
  const asked = new Set();
  let known = null;
  return ({ work }) => {
    for (const q of openQuestions(work)) {
      if (asked.has(q.id)) continue;
      asked.add(q.id);
      setText(urgent, `${questionWords(q)}. ${q.command ?? q.text ?? ""}`);
      if (known) sound("ask");
    }
    const all = Object.values(work.records);
    const over = all.filter((r) => known?.get(r.id) === false && ended(r) && r.why !== "added"); // what was added is a line of its work
    if (over.length) { // one sound, however many there are
      const bad = over.filter((r) => r.outcome !== "result").length;
      const many = `${over.length} pieces of work ended${bad ? `; ${bad} did not succeed` : ""}.`;
      setText(urgent, over.length > 1 ? many : `${workWords(over[0]).text} on ${over[0].server}.`);
      sound(bad ? "bad" : "good");
    }
    const now = new Map(all.map((r) => [r.id, ended(r)]));
    if (work.known) known = now;
  };
}

function toastCard(t, untoast) {
  const close = h("button", { class: "button icon-only", type: "button", "aria-label": "Dismiss" });
  dress(close, "close", "");
  let came = null; // from where the keyboard went into it
  const away = () => {
    if (el.contains(document.activeElement) && came?.checkVisibility()) came.focus();
    untoast(t.id);
  };
  close.addEventListener("click", away);
  const act = t.action
    ? h("button", { class: "button small", type: "button", text: t.action.label, on: { click: () => { t.action.run(); away(); } } })
    : null;
  const el = h("div", { class: `toast ${t.tone}`, role: t.tone === "bad" ? "alert" : "status" },
    h("p", { class: "toast-words", title: [t.text, t.next].filter(Boolean).join(" ") }, h("span", { class: "toast-text", text: t.text }), t.next ? " " : null, t.next ? h("span", { class: "toast-next", text: t.next }) : null),
    act, close);
  // It stays while somebody points at it or is in it.
  let timer;
  const wait = () => clearTimeout(timer);
  const resume = () => {
    wait();
    if (!t.stays) timer = setTimeout(away, t.action ? stayToPress : stay);
  };
  resume();
  el.addEventListener("focusin", ({ relatedTarget }) => { if (relatedTarget && !relatedTarget.closest(".toasts")) came = relatedTarget; });
  for (const [type, f] of [["pointerenter", wait], ["focusin", wait], ["pointerleave", resume], ["focusout", resume]]) el.addEventListener(type, f);
  return { el };
}

function brand({ voice, servers, loaded, call }) {
  const stand = servers.filter((s) => s.simulated).length;
  show(byId("badge"), loaded && (voice.simulated || stand > 0));
  setText(byId("model"), voice.model && !voice.simulated && call.phase === "idle" ? voice.model : "");
  const machines = stand === 0 ? "" : stand === servers.length ? "the machines" : `${stand} of the ${servers.length} machines`;
  const parts = [voice.simulated ? "the voice" : "", machines].filter(Boolean).join(" and ");
  const many = machines !== "" && !(stand === 1 && !voice.simulated);
  setText(byId("simulated-what"),
    parts ? `Here, ${parts} ${many ? "are simulated and run" : "is simulated and runs"} inside Switchboard. ${voice.simulated ? `The voice understands a few sentences and no more${voice.chips.length ? "; those above the text box show what it can do" : ""}.` : ""}` : "");
  show(byId("simulated-free"), voice.simulated && stand === servers.length);
  show(byId("real-voice"), voice.simulated);
  show(byId("real-machines"), stand > 0);
}
