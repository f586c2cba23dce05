// Reading one session.

import * as api from "./api.js";
import { whileOpen } from "./confirm.js";
import { byId, dress, h, reachable, setAttr, setText, show } from "./dom.js";
import { rich } from "./rich.js";
import { heldSessions } from "./state-needs.js";
import { get, toast, toastProblem } from "./store.js";
import { problemWords } from "./words.js";

const roles = { __proto__: null, user: "Asked", agent: "Agent", command: "Command", edit: "Edit", tool: "Tool", plan: "Plan" };

function row({ role, text }) {
  const body = role === "command" || role === "edit" ? reachable(h("pre", { class: "mono", role: "group", "aria-label": roles[role], text })) : h("div", {});
  if (role !== "command" && role !== "edit") rich(body, text, 3);
  return h("div", { class: `read ${role}` }, h("span", { class: "read-who", text: roles[role] ?? role }), body);
}

// Whether what others begin in a session can be followed, and nobody here does.
const watchable = ({ server, id }) => Boolean(get().servers.find((s) => s.name === server)?.watchable) &&
  !Object.values(get().work.records).some((r) => r.server === server && r.thread_id === id && !r.outcome);

const steps = [40, 200, 1000, 2000]; // lines that are read, as many as are wanted

/**
 * Wires the reader; at(area, ...names) writes down the address of what is read, goOn(session) is called when the person wants
 * to continue, begun(id) with the work that goes on elsewhere. Returns open(session).
 */
export function reader(at, goOn, begun) {
  const dialog = byId("reader");
  const lines = byId("reader-lines");
  const more = byId("reader-continue");
  let current = null;
  const elsewhere = mover(dialog, () => current, begun);
  dress(byId("reader-close"), "close", "");
  byId("reader-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => { if (document.body.dataset.area === "sessions") at("sessions"); });
  dialog.addEventListener("click", (e) => { if (e.target === dialog) dialog.close(); });
  more.addEventListener("click", () => {
    dialog.close();
    goOn(current);
  });
  const watch = byId("reader-watch");
  watch.addEventListener("click", async () => {
    const reading = whileOpen(dialog);
    watch.disabled = true;
    try {
      const { id } = await api.give({ server: current.server, thread_id: current.id, mode: "watch" });
      if (!reading.aborted) dialog.close();
      begun(id);
    } catch (error) {
      toastProblem(error);
    } finally {
      watch.disabled = false;
    }
  });
  async function earlier(session, limit) {
    const before = lines.scrollHeight - lines.scrollTop;
    await fill(session, limit);
    lines.scrollTop = lines.scrollHeight - before;
  }
  async function fill(session, limit) {
    const read = await api.session(session.server, session.id, limit);
    if (current !== session) return;
    const next = steps.find((n) => n > limit);
    const left = read.more && next ? [h("button", { class: "button small earlier", type: "button", text: `Show earlier lines${read.more > 1 ? ` (${read.more} or more)` : ""}`, on: { click: () => earlier(session, next).catch(toastProblem) } })]
      : [h("p", { class: "quiet-text", text: read.more ? "Earlier lines are too long to show here." : "This is where it begins." })];
    lines.replaceChildren(...left, ...read.lines.map(row));
    if (!read.lines.length) lines.replaceChildren(h("p", { class: "quiet-text", text: "Nothing was said in it yet." }));
  }
  return async (session) => {
    current = session;
    if (document.body.dataset.area === "sessions") at("sessions", session.server, session.id);
    setText(byId("reader-title"), session.title || session.label || "Session");
    setText(byId("reader-where"), [session.server, session.directory, session.branch, session.age].filter(Boolean).join(" · "));
    show(byId("reader-held"), heldSessions(get().work).has(`${session.server} ${session.id}`));
    lines.replaceChildren(h("p", { class: "quiet-text", text: "Reading…" }));
    show(more, true);
    show(watch, watchable(session));
    elsewhere();
    dialog.showModal();
    try {
      await fill(session, steps[0]);
      if (current === session) lines.scrollTop = lines.scrollHeight;
    } catch (error) {
      if (current !== session) return;
      lines.replaceChildren(h("p", { text: error.message }), h("p", { class: "quiet-text", text: error.next ?? "" }));
    }
  };
}

// Goes on with the session that is read on another machine: in a new session there, which is told the newest part of this one.
function mover(dialog, current, begun) {
  const opener = byId("reader-elsewhere");
  const form = byId("reader-move");
  const machine = byId("move-machine");
  const words = byId("move-words");
  const problem = byId("move-problem");
  let of = ""; // whose words are in the form
  const open = (on) => {
    show(form, on);
    show(byId("reader-continue").parentElement, !on);
    setAttr(opener, "aria-expanded", String(on));
    (on ? machine : opener).focus();
  };
  const note = () => setText(byId("move-note"), `${machine.value} begins a new session with a summary of this one. What was changed on ${current().server} may not be there.`);
  opener.addEventListener("click", () => { note(); open(true); });
  byId("move-no").addEventListener("click", () => open(false));
  machine.addEventListener("change", note);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const from = current();
    const [server, prompt] = [machine.value, words.value.trim()];
    const reading = whileOpen(dialog);
    byId("move-yes").disabled = true;
    try {
      const { id } = await api.give({ server, from_server: from.server, from_thread_id: from.id, prompt });
      if (words.value.trim() === prompt) words.value = "";
      if (reading.aborted) return toast(`It has begun on ${server}.`, { tone: "info" });
      dialog.close();
      begun(id);
    } catch (error) {
      if (reading.aborted) return toastProblem(error);
      setText(problem, problemWords(error));
      show(problem, true);
      byId("move-yes").disabled = false;
    }
  });
  return () => {
    const others = get().servers.filter((s) => s.name !== current().server && s.health !== "down");
    machine.replaceChildren(...others.map((s) => h("option", { value: s.name, text: s.name })));
    const read = `${current().server} ${current().id}`;
    if (read !== of) words.value = ""; // or else a slip that closed the reader would lose them
    of = read;
    show(problem, false);
    byId("move-yes").disabled = false;
    open(false);
    show(opener, others.length > 0);
  };
}
