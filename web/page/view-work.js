// The work: what is not finished on top, below it what is, a line each, by session.

import { byId, h, keyed, setText, show } from "./dom.js";
import { attached, listed, newestEnd, openQuestions, over, running, turnsOf, unread } from "./state-work.js";
import { workCard } from "./view-card.js";

const drawn = 50; // finished pieces that are drawn at first, and with each step as one scrolls
const atOnce = 25; // cards that are made in one frame
const ahead = 600; // pixels before the end of the list
const openAtOnce = 3; // pieces that are not finished and open by themselves
const tick = 10_000; // ms for which a line's times hold

const none = { at: 0, of: 0 };

const worthFinding = 10; // pieces of work, from which on there is a field to find one
const standing = ["working", "waiting", "done", "failed", "stopped"];

/** Wires the work. `acts`: those of a card, stopAll(), clear(at); hue(server) gives a machine's colour. */
export function workView(acts, hue) {
  const cards = byId("cards");
  const stopAll = byId("stop-all");
  const finished = byId("finished");
  const box = cards.parentElement;
  const filter = { words: "" };
  const opened = new Map(); // by id: whether it was opened or closed by hand, or by a link to it
  const first = new Map(); // by id: whether it opened by itself when it came
  const seen = new Set(); // work that was seen before it was finished
  let fresh = ""; // what finished last while it was seen: it stays open until something else does
  let top = "";
  let state;
  let most = drawn;
  const draw = () => state && view(state);
  const tools = finder(filter, draw, () => acts.clear(newestEnd(state.work)));
  box.insertBefore(tools.el, finished);
  const more = h("button", { class: "button small older", type: "button", hidden: true, on: { click: () => older() } });
  const older = () => {
    most += drawn;
    draw();
  };
  finished.after(more);
  box.addEventListener("scroll", () => { if (!more.hidden && box.scrollHeight - box.scrollTop - box.clientHeight < ahead) older(); }, { passive: true });
  stopAll.addEventListener("click", acts.stopAll);
  const made = new Map(); // cards by id: one that ends goes from one list to the other as it is
  const list = (parent, items) => keyed(parent, items, (i) => (i.heading === undefined ? i.record.id : `of ${i.heading}`), (i) => {
    if (i.heading !== undefined) return heading(i, hue);
    if (!made.has(i.record.id)) made.set(i.record.id, workCard(i, hue, cardsDo));
    return made.get(i.record.id);
  });
  // The cards of some rows that are made already, and the next few: a rush of new work is drawn over some frames.
  let soon = 0;
  let few = 0;
  const inTime = (rows) => rows.filter((i) => i.heading !== undefined || made.has(i.record.id) || few-- > 0);
  const cardsDo = { ...acts, opened: (id, on) => { opened.set(id, on); acts.opened(id, on); draw(); } };

  function view(now) {
    state = now;
    const { work } = state;
    const parts = attached(work);
    const { all, open, under, groups } = listed(work, filter.words, parts);
    const questions = openQuestions(work);
    const asked = new Set(questions.map((q) => q.handoff));
    for (const r of all) {
      if (!over(r)) seen.add(r.id);
      else if (seen.delete(r.id)) fresh = r.id;
    }
    const goesOn = open.filter((r) => !over(r));
    for (const r of goesOn) if (!first.has(r.id)) first.set(r.id, goesOn.length <= openAtOnce && !r.waits);
    const clock = Math.floor(Date.now() / tick);
    const gone = state.feed === "lost" ? state.seen : 0;
    const turns = turnsOf(work);
    const one = (record, named = true) => ({
      record, named, under: under.has(record.id), seen: gone, clock, part: parts.get(record.id), waiting: asked.has(record.id), stopping: work.stopping[record.id], read: work.read[record.id], unread: unread(work, record),
      turn: turns.get(record.id) ?? none,
      open: opened.get(record.id) ?? (over(record) ? record.id === fresh : first.get(record.id)),
    });
    const at = document.activeElement;
    few = atOnce;
    list(cards, inTime(open.map((r) => one(r))));
    const rows = groups.flatMap((g) => {
      const alone = g.items.filter((r) => !under.has(r.id)).length === 1;
      return [...(alone ? [] : [{ heading: g.key, server: g.server, text: g.title || "no session" }]), ...g.items.map((r) => one(r, alone || under.has(r.id)))];
    });
    list(finished, inTime(rows.slice(0, most)));
    cancelAnimationFrame(soon);
    if (few < 0) soon = requestAnimationFrame(draw);
    show(more, rows.length > most);
    setText(more, `Show older (${rows.length - most})`);
    if (document.activeElement !== at && at.isConnected) at.focus({ preventScroll: true }); // its card ended, and moved
    for (const id of made.keys()) if (!work.records[id]) made.delete(id);
    // What comes on top is what was asked for just now: it is shown, unless somebody is at work in the list.
    const newest = open[0]?.id ?? "";
    if (newest && newest !== top && !questions.length && !box.contains(document.activeElement)) box.scrollTop = 0;
    top = newest;
    const found = open.length + groups.reduce((n, g) => n + g.items.length, 0);
    tools.update(all, found);
    show(byId("no-work"), state.work.known && !state.work.incomplete && all.length === 0 && questions.length === 0);
    const busy = running(work);
    show(stopAll, busy.length > 1 && !gone);
    setText(stopAll, `Stop all work (${busy.length})`);
  }
  // Brings a piece of work into the list and opens it, whatever is filtered or put away.
  view.reveal = (id) => {
    tools.reset();
    opened.set(id, true);
    most = Infinity;
    draw();
  };
  return view;
}

function heading({ server }, hue) {
  const text = h("span", { class: "group-title" });
  const el = server ? h("h3", { class: `group ${hue(server)}` }, h("span", { class: "plug", "aria-hidden": "true" }), h("span", { class: "plug-name", text: server }), " ", text) : h("h3", { class: "group" }, text);
  return { el, update: (i) => setText(text, i.text) };
}

// What finds work, by its words, its machine or where it stands, and what puts away what is finished.
function finder(filter, draw, clear) {
  const places = h("datalist", { id: "work-places" });
  const words = h("input", { id: "work-search", class: "text-field", type: "search", placeholder: "Find work", maxlength: 200, autocomplete: "off", list: places.id });
  const status = h("p", { class: "quiet-text work-found", role: "status" });
  const clearing = h("button", { class: "button small", type: "button", text: "Clear finished", on: { click: clear } });
  const field = h("label", { class: "tool-field" }, h("span", { class: "sr", text: "Find work" }), words, places);
  const el = h("div", { class: "tools work-tools", role: "group", "aria-label": "Find work", hidden: true }, field, clearing, status);
  words.addEventListener("input", () => { filter.words = words.value; draw(); });
  return {
    el,
    reset: () => { words.value = filter.words = ""; },
    update(all, found) {
      const names = [...new Set(all.map((r) => r.server))].sort();
      if (places.dataset.names !== names.join()) {
        places.dataset.names = names.join();
        places.replaceChildren(...[...names, ...standing].map((value) => h("option", { value })));
      }
      const narrowed = Boolean(filter.words.trim());
      show(field, all.length >= worthFinding || narrowed);
      show(clearing, all.some(over));
      show(el, !field.hidden || !clearing.hidden);
      setText(status, narrowed ? (found ? `${found} of ${all.length}` : "No matches.") : "");
      show(status, narrowed);
    },
  };
}
