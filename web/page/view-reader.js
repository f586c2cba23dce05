// Reading one session.

import * as api from "./api.js";
import { byId, dress, h, setText, show } from "./dom.js";
import { paragraphs } from "./view-work.js";

const roles = { __proto__: null, user: "Asked", agent: "Agent", command: "Command", edit: "Edit", tool: "Tool" };

function row({ role, text }) {
  const body = role === "command" || role === "edit" ? h("pre", { class: "mono", text }) : h("div", {});
  if (role !== "command" && role !== "edit") paragraphs(body, text);
  return h("div", { class: `read ${role}` }, h("span", { class: "read-who", text: roles[role] ?? role }), body);
}

/** Wires the reader; goOn(session) is called when the person wants to continue. Returns open(session). */
export function reader(goOn) {
  const dialog = byId("reader");
  const lines = byId("reader-lines");
  const more = byId("reader-continue");
  let current = null;
  dress(byId("reader-close"), "close", "");
  byId("reader-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (e) => { if (e.target === dialog) dialog.close(); });
  more.addEventListener("click", () => {
    dialog.close();
    goOn(current);
  });
  return async (session) => {
    current = session;
    setText(byId("reader-title"), session.title || session.label || "Session");
    setText(byId("reader-where"), [session.server, session.directory, session.branch, session.age].filter(Boolean).join(" · "));
    lines.replaceChildren(h("p", { class: "quiet-text", text: "Reading…" }));
    show(more, true);
    dialog.showModal();
    try {
      const read = await api.session(session.server, session.id);
      if (current !== session) return;
      const left = read.more ? [h("p", { class: "quiet-text", text: read.more === 1 ? "One earlier line is left out." : `${read.more} earlier lines are left out.` })] : [];
      lines.replaceChildren(...left, ...read.lines.map(row));
      if (!read.lines.length) lines.append(h("p", { class: "quiet-text", text: "Nothing was said in it yet." }));
      lines.scrollTop = lines.scrollHeight;
    } catch (error) {
      if (current !== session) return;
      lines.replaceChildren(h("p", { text: error.message }), h("p", { class: "quiet-text", text: error.next ?? "" }));
    }
  };
}
