// The palette: one field that leads to machines, sessions, work and commands.

import { byId, h, setAttr } from "./dom.js";
import { attached, newestFirst } from "./state-work.js";

const most = 12; // rows that are shown at once

/**
 * Wires the palette. `acts`: work(id), machine(name), session(sticky), and commands(), which gives [name, f] of what can be
 * done now; state() gives the page's state, hue(server) a machine's colour. Returns what opens it.
 */
export function palette(acts, state, hue) {
  const dialog = byId("palette");
  const field = byId("palette-field");
  const list = byId("palette-list");
  let rows = [];
  let at = 0;

  function found() {
    const { servers, work } = state();
    const within = new Set([...attached(work).values()].flatMap((p) => [...p.added, ...p.tries]));
    const all = [
      ...acts.commands().map(([text, run]) => ({ kind: "Command", text, run })),
      ...servers.map((s) => ({ kind: "Machine", text: s.name, server: s.name, run: () => acts.machine(s.name) })),
      ...work.stickies.map((t) => ({ kind: "Session", text: `${t.title || "Session"} on ${t.server}`, server: t.server.split("/")[0], run: () => acts.session(t) })),
      ...newestFirst(work).filter((r) => !within.has(r)).map((r) => ({ kind: "Work", text: r.prompt.split("\n", 1)[0].slice(0, 200), server: r.server, run: () => acts.work(r.id) })),
    ];
    const want = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    return all.filter((r) => want.every((w) => `${r.kind} ${r.text} ${r.server ?? ""}`.toLowerCase().includes(w))).slice(0, most);
  }
  function mark(to) {
    at = Math.max(0, Math.min(rows.length - 1, to));
    [...list.children].forEach((el, i) => setAttr(el, "aria-selected", String(i === at)));
    const chosen = list.children[at];
    setAttr(field, "aria-activedescendant", chosen?.id);
    chosen?.scrollIntoView({ block: "nearest" });
  }
  function draw() {
    rows = found();
    list.replaceChildren(...rows.map((r, i) => h("li", { id: `palette-${i}`, class: `palette-row ${r.server ? hue(r.server) : ""}`, role: "option", on: { click: () => run(i) } },
      r.server ? h("span", { class: "plug", "aria-hidden": "true" }) : null, h("span", { class: "palette-text", text: r.text }), h("span", { class: "quiet-text", text: r.kind }))));
    mark(0);
  }
  function run(i) {
    const row = rows[i];
    dialog.addEventListener("close", () => row?.run(), { once: true }); // the dialog gives the focus back first: then it goes to what is opened
    dialog.close();
  }
  field.addEventListener("input", draw);
  field.addEventListener("keydown", (e) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (step) mark(at + step);
    else if (e.key === "Enter" && !e.isComposing) run(at);
    else return;
    e.preventDefault();
  });
  dialog.addEventListener("click", (e) => { if (e.target === dialog) dialog.close(); });
  const open = () => {
    field.value = "";
    draw();
    dialog.showModal();
  };
  document.addEventListener("keydown", (e) => {
    if (e.key.toLowerCase() !== "k" || !(e.metaKey || e.ctrlKey) || e.altKey || e.shiftKey || state().session !== "in" || document.querySelector("dialog[open]")) return;
    e.preventDefault();
    open();
  });
  return open;
}
