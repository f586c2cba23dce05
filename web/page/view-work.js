// The work: what is not finished on top, below it what is, a line each, by session.

import { byId, h, keyed, setText, show } from "./dom.js";
import { listed, newestEnd, openQuestions, over, running, unread } from "./state-work.js";
import { workCard } from "./view-card.js";

const kinds = { "": "All states", running: "Not finished", done: "Done", failed: "Failed, or tests fail", stopped: "Stopped" };

/** Wires the work. `acts`: those of a card, stopAll(), clear(at); hue(server) gives a machine's colour. */
export function workView(acts, hue) {
  const cards = byId("cards");
  const stopAll = byId("stop-all");
  const finished = byId("finished");
  const box = cards.parentElement;
  const filter = { words: "", server: "", kind: "" };
  const opened = new Map(); // finished work by id: whether it was opened or closed by hand, or by a link to it
  const seen = new Set(); // work that was seen before it was finished
  let fresh = ""; // what finished last while it was seen: it stays open until something else does
  let top = "";
  let state;
  const draw = () => state && view(state);
  const tools = filters(filter, draw, () => acts.clear(newestEnd(state.work)));
  box.insertBefore(tools.el, finished);
  stopAll.addEventListener("click", acts.stopAll);
  const made = new Map(); // cards by id: one that ends goes from one list to the other as it is
  const list = (parent, items) => keyed(parent, items, (i) => (i.heading === undefined ? i.record.id : `of ${i.heading}`), (i) => {
    if (i.heading !== undefined) return heading(i, hue);
    if (!made.has(i.record.id)) made.set(i.record.id, workCard(i, hue, cardsDo));
    return made.get(i.record.id);
  });
  const cardsDo = { ...acts, opened: (id, on) => { opened.set(id, on); draw(); } };

  function view(now) {
    state = now;
    const { work } = state;
    const { all, open, groups } = listed(work, filter);
    const questions = openQuestions(work);
    const asked = new Set(questions.map((q) => q.handoff));
    for (const r of all) {
      if (!over(r)) seen.add(r.id);
      else if (seen.delete(r.id)) fresh = r.id;
    }
    const one = (record) => ({
      record, waiting: asked.has(record.id), stopping: work.stopping[record.id], read: work.read[record.id], unread: unread(work, record),
      open: opened.get(record.id) ?? record.id === fresh,
    });
    const at = document.activeElement;
    list(cards, [...(open.length ? [{ heading: "open", text: "Not finished" }] : []), ...open.map(one)]);
    list(finished, groups.flatMap((g) => [{ heading: g.key, server: g.server, text: g.title || "no session" }, ...g.items.map(one)]));
    if (document.activeElement !== at && at.isConnected) at.focus({ preventScroll: true }); // its card ended, and moved
    for (const id of made.keys()) if (!work.records[id]) made.delete(id);
    // What comes on top is what was asked for just now: it is shown, unless somebody is at work in the list.
    const first = open[0]?.id ?? "";
    if (first && first !== top && !questions.length && !box.contains(document.activeElement)) box.scrollTop = 0;
    top = first;
    const found = open.length + groups.reduce((n, g) => n + g.items.length, 0);
    tools.update(all, found);
    show(byId("no-work"), state.work.known && !state.work.incomplete && all.length === 0 && questions.length === 0);
    const busy = running(work);
    show(stopAll, busy.length > 1);
    setText(stopAll, `Stop all work (${busy.length})`);
  }
  // Brings a piece of work into the list and opens it, whatever is filtered or put away.
  view.reveal = (id) => {
    Object.assign(filter, { words: "", server: "", kind: "" });
    tools.reset();
    opened.set(id, true);
    draw();
  };
  return view;
}

function heading({ server }, hue) {
  const text = h("span", { class: "group-title" });
  const el = server ? h("h3", { class: `group ${hue(server)}` }, h("span", { class: "plug", "aria-hidden": "true" }), h("span", { class: "plug-name", text: server }), " ", text) : h("h3", { class: "group" }, text);
  return { el, update: (i) => setText(text, i.text) };
}

// What narrows the list, and what puts away what is finished.
function filters(filter, draw, clear) {
  const words = h("input", { id: "work-search", class: "text-field", type: "search", placeholder: "Search the work", maxlength: 200, autocomplete: "off" });
  const servers = h("select", { class: "select" });
  const states = h("select", { class: "select" }, ...Object.entries(kinds).map(([value, text]) => h("option", { value, text })));
  const status = h("p", { class: "quiet-text work-found", role: "status" });
  const clearing = h("button", { class: "button small", type: "button", text: "Clear finished", on: { click: clear } });
  const field = (name, control) => h("label", { class: "tool-field" }, h("span", { class: "sr", text: name }), control);
  const el = h("div", { class: "tools work-tools", role: "group", "aria-label": "Find work", hidden: true }, field("Search the work", words), clearing, field("Machine", servers), field("State", states), status);
  words.addEventListener("input", () => { filter.words = words.value; draw(); });
  servers.addEventListener("change", () => { filter.server = servers.value; draw(); });
  states.addEventListener("change", () => { filter.kind = states.value; draw(); });
  let listedNames = "";
  return {
    el,
    reset: () => { words.value = servers.value = states.value = ""; },
    update(all, found) {
      const names = [...new Set(all.map((r) => r.server))].sort();
      if (names.join() !== listedNames) {
        listedNames = names.join();
        servers.replaceChildren(h("option", { value: "", text: "All machines" }), ...names.map((text) => h("option", { value: text, text })));
        servers.value = names.includes(filter.server) ? filter.server : (filter.server = "");
      }
      const narrowed = filter.words || filter.server || filter.kind;
      show(el, all.length > 1 || Boolean(narrowed));
      show(servers.parentElement, names.length > 1 || Boolean(filter.server));
      show(clearing, all.some(over));
      setText(status, narrowed ? (found ? `${found} of ${all.length}` : "Nothing fits.") : "");
      show(status, Boolean(narrowed));
    },
  };
}
