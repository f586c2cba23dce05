// The conversation: lines, chips, and the box to type into.

import { byId, dress, fitHeight, h, keyed, once, setAttr, setText, show } from "./dom.js";
import { takesText } from "./keys.js";
import { ticks } from "./state.js";
import { placeOf } from "./straight.js";
import { refresh } from "./store.js";

const helloCall = "Call and say what you want done, and on which machine. Or type; it goes the same way.";
const helloTry = "Here the voice and the machines are simulated. Press Call, then try these sentences from top to bottom, or type your own.";
const who = { you: "You", voice: "Voice", note: "" };

function line(entry, acts) {
  const name = h("span", { class: "line-who", text: who[entry.who] });
  const text = h("span", { class: "line-text" });
  const mark = h("span", { class: "line-mark" });
  const heard = document.createTextNode("");
  const unheard = h("span", { class: "line-unheard", hidden: true });
  text.append(heard, unheard);
  const all = h("button", { class: "line-all", type: "button", hidden: true, "aria-expanded": "false" });
  all.addEventListener("click", () => {
    show(unheard, unheard.hidden);
    told();
  });
  const told = () => {
    setText(all, unheard.hidden ? "Show all of it" : "Show what was heard");
    setAttr(all, "aria-expanded", String(!unheard.hidden));
  };
  told();
  const fate = entry.typed ? fateOf(acts) : null;
  const el = h("div", { class: `line ${entry.who}` }, entry.who === "note" ? null : name, text, mark, all, fate?.el);
  return {
    el,
    update(e) {
      const end = e.heard ?? e.text.length;
      setText(heard, e.text ? e.text.slice(0, end) : e.state === "heard" ? "…" : "");
      setText(unheard, e.text.slice(end));
      show(all, end < e.text.length);
      setText(mark, e.to ? `given to ${placeOf(e.to).server}` : e.state === "cut" ? "stopped" : "");
      fate?.update(e);
      el.classList.toggle("partial", e.state === "heard" || e.state === "saying");
      setAttr(el, "aria-busy", e.state === "saying" || e.state === "heard" ? "true" : null);
    },
  };
}

// What became of a line that was typed and has not arrived, and what can be done about it.
function fateOf(acts) {
  let now;
  const words = h("span", {});
  const button = (text, act) => h("button", { class: "line-all", type: "button", text, on: { click: () => act(now) } });
  const waiting = [button("Send now", acts.sendWaiting), button("Edit", acts.takeBack)];
  const unsure = button("Send again", acts.again);
  const el = h("div", { class: "line-fate", role: "status", hidden: true }, words, ...waiting, unsure);
  return {
    el,
    update(e) {
      now = e;
      const waits = e.delivery === "waiting" && e.stuck;
      show(el, waits || e.delivery === "unsure");
      setText(words, waits ? (e.lost ? "Not sent yet. It is sent when Switchboard is back." : "Not sent yet.") : "It is unclear whether this was heard.");
      for (const b of waiting) show(b, waits);
      show(waiting[0], waits && !e.lost);
      show(unsure, e.delivery === "unsure");
      el.parentElement?.classList.toggle("unsent", Boolean(waits || e.delivery === "unsure"));
    },
  };
}

let choice = null; // { value, title }: the place that another view has chosen for what is typed

/** Chooses where what is typed goes, until another place is chosen: as in placeOf; `title` is the session's. */
export function choose(value, title = "") {
  choice = { value, title };
  refresh();
  byId("say").focus();
}

/**
 * Wires the conversation. `acts`: say(text, to) sends what is typed, or what a sentence to try says; sendWaiting(),
 * takeBack(entry) and again(entry) are for lines that were not sent. `settings` keep the chosen place, changed(name) writes them down.
 */
export function talkView(acts, { settings, changed }) {
  const { say } = acts;
  const box = byId("transcript");
  const chips = byId("chips");
  const field = byId("say");
  const form = byId("composer");
  const to = byId("say-to");
  const how = h("p", {});
  const hello = h("div", { class: "hello" }, h("p", { class: "hello-title", text: "Talk to your machines." }), how);
  const lines = h("div", { class: "lines" });
  box.append(hello, lines);
  dress(form.querySelector("button"), "send", "");

  const grow = () => fitHeight(field);
  field.addEventListener("input", grow);
  // Enter sends, Shift and Enter begins a line. Phones tell of the line break, not of the key.
  let shift = false;
  field.addEventListener("keydown", (e) => { shift = e.shiftKey; });
  field.addEventListener("beforeinput", (e) => {
    if (shift || e.isComposing || (e.inputType !== "insertLineBreak" && e.inputType !== "insertParagraph")) return;
    e.preventDefault();
    form.requestSubmit();
  });
  form.addEventListener("submit", (e) => {
    e.preventDefault();
    const text = takeTyped();
    if (text) say(text, to.value);
    box.scrollTop = box.scrollHeight;
  });

  function chipButton(c) {
    const el = h("button", { class: "chip", type: "button", "data-number": c.number, title: c.hint, on: { click: once(() => say(c.text)) } },
      h("span", { class: "chip-text", text: c.text }), c.hint ? h("span", { class: "chip-hint", text: c.hint }) : null);
    return { el };
  }

  // Where what is typed goes: each machine with the session that it goes on in, or with a new one, also in a worktree of
  // a project, or of the machine's directory where it has none; and a session that
  // was chosen elsewhere on the page. It stays chosen until another one is.
  const pick = (value, title = "") => {
    [settings.to, settings.toTitle] = [value, title];
    changed("to");
  };
  to.addEventListener("change", () => {
    pick(to.value, to.value === settings.to ? settings.toTitle : "");
    refresh();
  });
  function places({ servers, work, loaded }) {
    if (!loaded) return;
    if (choice) pick(choice.value, choice.title);
    choice = null;
    const rows = servers.flatMap(({ name, worktrees, projects }) => {
      const used = work.stickies.find((t) => t.server === name);
      return [...(used ? [[name, `${name}, in ${brief(used.title || "its session")}`]] : []), [`new ${name}`, `${name}, in a new session`],
        ...(worktrees ? projects?.map((p) => `${name}/${p}`) ?? [name] : []).map((at) => [`tree ${at}`, `${at}, in a worktree`])];
    });
    const { server } = placeOf(settings.to);
    if (settings.to.startsWith("in ") && servers.some((s) => s.name === server)) rows.push([settings.to, `${server}, in ${brief(settings.toTitle || "the session that was chosen")}`]);
    // The session in use there is gone: what is typed begins one, as it does where none is in use.
    if (servers.some((s) => s.name === settings.to) && !rows.some(([value]) => value === settings.to)) rows.push([settings.to, settings.to]);
    const key = JSON.stringify([rows, settings.to]);
    if (to.dataset.key === key) return;
    to.dataset.key = key;
    to.replaceChildren(...[["", "the voice"], ...rows].map(([value, text]) => h("option", { value, text })));
    to.value = rows.some(([value]) => value === settings.to) ? settings.to : "";
    form.classList.toggle("straight", to.value !== "");
    field.placeholder = to.value ? `Straight to ${placeOf(to.value).server}` : "Type instead of speaking";
  }

  // A sentence that was said just now is ticked off where it stands, until no second tap is to be feared.
  const said = new Map(); // its text: until when it stays
  function stays(c, state) {
    if (!state.usedChips.includes(c.text)) return false;
    if (!said.has(c.text)) {
      said.set(c.text, Date.now() + settle - 100); // before the next one is brought to its place
      setTimeout(refresh, settle - 80);
    }
    return Date.now() < said.get(c.text);
  }

  const story = storyRow(chips);
  const stay = stayAtEnd(box, lines);
  return (state) => {
    const { entries } = state.talk;
    places(state);
    const talking = entries.some((e) => e.who === "you"); // a greeting alone moves nothing
    show(hello, !entries.length);
    const lost = state.feed === "lost";
    const stuck = (e) => e.held || lost || (!e.to && state.call.phase === "idle");
    keyed(lines, entries.map((e) => (e.delivery ? { ...e, lost, stuck: stuck(e) } : e)), (e) => e.id, (e) => line(e, acts));
    stay();
    // Once people talk, the chips make room: one row. What was said goes for good, but not under a finger.
    const used = ticks(state);
    const { chips: named } = state.voice;
    const all = named.map((c, i) => ({ ...c, number: i + 1 })).filter((c) => !used(c) || stays(c, state));
    setText(how, named.length ? helloTry : helloCall);
    show(chips, all.length > 0);
    chips.classList.toggle("strip", talking);
    box.classList.toggle("short", all.length > 0 && !talking);
    keyed(chips, all, (c) => c.text, chipButton);
    for (const c of all) chips.keyedChildren.get(c.text).el.classList.toggle("used", used(c));
    story(talking && !chips.hidden);
  };
}

const brief = (title) => (title.length > 48 ? `${title.slice(0, 47).trimEnd()}…` : title);

const settle = 900; // ms before sentences move: a second tap of a finger must not hit another one

// Shows the sentences as one row whose next step is in the picture, and all of them on wish.
function storyRow(chips) {
  const all = byId("story-all");
  let next, timer, open = false;
  const turn = (on) => {
    open = on;
    chips.classList.toggle("open", on);
    setAttr(all, "aria-expanded", String(on));
    setText(all, on ? "Less" : "All");
    setAttr(all, "aria-label", on ? "Show less" : "Show all sentences to try");
    bring();
  };
  const bring = () => {
    if (!next?.isConnected) return;
    const room = chips.getBoundingClientRect();
    const { paddingLeft, paddingTop } = getComputedStyle(chips);
    const at = next.getBoundingClientRect();
    chips.scrollTo({ left: chips.scrollLeft + at.left - room.left - parseFloat(paddingLeft), top: chips.scrollTop + at.top - room.top - parseFloat(paddingTop), behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  };
  all.addEventListener("click", () => {
    clearTimeout(timer); // what the person wants stays
    turn(!open);
  });
  new ResizeObserver(bring).observe(chips);
  return (folded) => {
    show(all, folded);
    if (!folded) return;
    const step = chips.querySelector(".chip:not(.used)");
    if (step === next) return;
    const first = !next;
    next = step;
    clearTimeout(timer);
    if (first) turn(false);
    else timer = setTimeout(() => turn(false), settle);
  };
}

// Keeps a box at its end, whatever changes its size, unless the person has scrolled up in it.
function stayAtEnd(box, inner) {
  let atEnd = true;
  const stay = () => { if (atEnd) box.scrollTop = box.scrollHeight; };
  box.addEventListener("scroll", () => { atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 48; }, { passive: true });
  const sizes = new ResizeObserver(stay);
  sizes.observe(box);
  sizes.observe(inner);
  return stay;
}

/** Puts words into the box for the person to finish, before what is typed there. Who types elsewhere goes on there. */
export function prefill(text) {
  const field = byId("say");
  field.value = [text, field.value].filter(Boolean).join("\n");
  fitHeight(field);
  const at = document.activeElement;
  if (at && at !== field && takesText(at)) return;
  field.focus();
  field.setSelectionRange(field.value.length, field.value.length);
}

/** Takes what is typed out of the box. */
export function takeTyped() {
  const field = byId("say");
  const text = field.value.trim();
  field.value = "";
  fitHeight(field);
  return text;
}
