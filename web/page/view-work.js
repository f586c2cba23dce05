// The work: what is not finished on top, below it what is, a line each, by session.

import { byId, h, keyed, setAttr, setText, show } from "./dom.js";
import { attached, listed, newestEnd, openQuestions, over, running, turnsOf, unread } from "./state-work.js";
import { workCard } from "./view-card.js";

const drawn = 50; // finished pieces that are drawn at first, and with each step as one scrolls
const atOnce = 8; // cards that are made in one frame
const still = 1200; // ms after the last move of a pointer in the list: until then no row comes, goes or moves
const rush = 2000; // ms: work that comes so shortly after other work is told of and not scrolled to
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
  let state;
  let most = drawn;
  let pointedAt = -Infinity;
  let settling = 0;
  let shownOrder = null; // { open, rows } as they were drawn last
  const news = newsAbove(box);
  for (const type of ["pointermove", "pointerdown"]) box.addEventListener(type, () => { pointedAt = performance.now(); }, { passive: true });
  box.addEventListener("pointerleave", () => { pointedAt = -Infinity; draw(); });
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
  const cardsDo = { ...acts, opened: (id, on) => { opened.set(id, on); draw(); } };

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
    const rows = groups.flatMap((g) => {
      const alone = g.items.filter((r) => !under.has(r.id)).length === 1;
      return [...(alone ? [] : [{ heading: g.key, server: g.server, text: g.title || "no session" }]), ...g.items.map((r) => ({ id: r.id, named: alone || under.has(r.id) }))];
    });
    const order = ordered({ open: open.map((r) => ({ id: r.id })), rows });
    const full = (list) => list.filter((i) => i.heading !== undefined || work.records[i.id]).map((i) => (i.heading === undefined ? one(work.records[i.id], i.named) : i));
    list(cards, inTime(full(order.open)));
    list(finished, inTime(full(order.rows.slice(0, most))));
    cancelAnimationFrame(soon);
    if (few < 0) soon = requestAnimationFrame(draw);
    show(more, rows.length > most);
    setText(more, `Show older (${rows.length - most})`);
    if (document.activeElement !== at && at.isConnected) at.focus({ preventScroll: true }); // its card ended, and moved
    for (const id of made.keys()) if (!work.records[id]) made.delete(id);
    news.update(open.map((r) => r.id), !questions.length);
    const found = open.length + groups.reduce((n, g) => n + g.items.length, 0);
    tools.update(all, found);
    show(byId("no-work"), state.work.known && !state.work.incomplete && all.length === 0 && questions.length === 0);
    const busy = running(work);
    show(stopAll, busy.length > 1 && !gone);
    setText(stopAll, `Stop all (${busy.length})`);
    setAttr(stopAll, "aria-label", `Stop all (${busy.length}): all work`);
  }
  // Rows do not move while somebody is about to press one: the order stays as it was drawn, also of what has ended.
  function ordered(wanted) {
    const left = pointedAt + still - performance.now();
    clearTimeout(settling);
    if (left > 0 && shownOrder) settling = setTimeout(draw, left);
    else shownOrder = wanted;
    return shownOrder;
  }
  /** Shows what has come on top, once the rows have their places. */
  view.settle = () => news.settle();
  // Lists the work that has some words.
  view.find = (words) => {
    tools.reset(words);
    pointedAt = -Infinity;
    most = drawn;
    draw();
    tools.el.scrollIntoView({ block: "start" });
    byId("work-search").focus({ preventScroll: true });
  };
  return view;
}

// Tells of work that came above what is in sight. Who is at the top and does nothing else there sees it come in; a rush of
// it, and what comes while somebody reads, is counted on a button.
function newsAbove(box) {
  const known = new Set();
  const unseen = new Set();
  let first = true;
  let cameAt = -Infinity;
  let glide = false;
  let wasTop = true;
  const button = h("button", { class: "button small news", type: "button", hidden: true, on: { click: () => { toTop(); } } });
  box.after(button);
  const toTop = () => box.scrollTo({ top: 0, behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  const told = () => {
    show(button, unseen.size > 0);
    setText(button, `${unseen.size} new`);
  };
  box.addEventListener("scroll", () => {
    wasTop = box.scrollTop < 8;
    if (!wasTop) return;
    unseen.clear();
    told();
  }, { passive: true });
  return {
    update(ids, may) {
      const fresh = ids.filter((id) => !known.has(id));
      for (const id of fresh) known.add(id);
      if (first || !fresh.length) {
        first = first && !ids.length;
        return;
      }
      const rushes = performance.now() - cameAt < rush || fresh.length > 2;
      cameAt = performance.now();
      glide = may && !rushes && wasTop && !box.contains(document.activeElement);
      for (const id of fresh) unseen.add(id);
    },
    settle() {
      if (!unseen.size) return;
      if (box.scrollTop < 8) unseen.clear(); // nothing is above: there was room
      else if (glide) toTop();
      glide = false;
      told();
    },
  };
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
    reset: (text = "") => { words.value = filter.words = text; },
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
