// The sessions of all machines: search, the ones in use, reading, naming, putting away.

import { confirmed } from "./confirm.js";
import * as api from "./api.js";
import { byId, h, icon, keyed, setAttr, setText, show } from "./dom.js";
import { onEnter } from "./places.js";
import { heldSessions } from "./state-needs.js";
import { get, toast, toastProblem } from "./store.js";
import { newestFirst, over } from "./state-work.js";
import { naming } from "./view-naming.js";
import { outcomeWords, sessionPill, visible } from "./words.js";

const pause = 250; // after a letter, before it is looked for
const ahead = 600; // pixels before the end of the list, at which older ones are read

// Two pages as one; `read`: how many sessions they had. One that was used meanwhile may be on both.
function joined(before, page) {
  const read = (before?.read ?? 0) + page.items.length;
  const known = new Set(before?.items.map((s) => `${s.server} ${s.id}`));
  return { ...page, read, items: [...(before?.items ?? []), ...page.items.filter((s) => !known.has(`${s.server} ${s.id}`))] };
}

/** Wires the sessions. `acts`: read(session), fresh(server) begins a new one; stickies() reads those in use; hue(server). */
export function sessionsView(acts, hue) {
  const search = h("input", { id: "sessions-search", class: "text-field", type: "search", placeholder: "Title, directory or branch", maxlength: 200, autocomplete: "off" });
  const server = h("select", { id: "sessions-server", class: "select" });
  const fresh = h("button", { class: "button", type: "button", text: "New session" });
  const words = h("p", { class: "quiet-text", role: "status" });
  const list = h("ul", { class: "rows" });
  const box = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Session list" }, words, list);
  byId("sessions").append(
    h("div", { class: "area-head" }, h("h2", { id: "sessions-title", class: "area-title", tabindex: "-1", text: "Sessions" })),
    h("div", { class: "tools" },
      h("label", { class: "tool-field" }, h("span", { class: "sr", text: "Search sessions" }), search),
      h("label", { class: "tool-field narrow" }, h("span", { class: "sr", text: "Machine" }), server), fresh),
    box);
  const older = h("button", { class: "button small older", type: "button", text: "Show older", hidden: true, on: { click: () => readOlder() } });
  box.append(older);
  box.addEventListener("scroll", () => { if (!older.hidden && box.scrollHeight - box.scrollTop - box.clientHeight < ahead) readOlder(); }, { passive: true });
  let found = { items: [] };
  let asked = 0;
  let reading = false; // what is older
  let timer = 0;
  let failed = false;

  // Reads what is there now, as far as `least` sessions were shown.
  async function read(least = 0) {
    const mine = ++asked;
    failed = reading = false;
    if (!found.items.length) setText(words, "Looking…");
    try {
      let all, page;
      do {
        page = await api.allSessions(server.value, search.value.trim(), all?.read);
        if (mine !== asked) return;
        all = joined(all, page);
      } while (page.more && page.items.length && all.items.length < least);
      found = all;
    } catch (error) {
      if (mine !== asked) return;
      failed = !error.status || error.status >= 500; // they are read again once Switchboard is back
      found = { items: [], errors: [{ message: error.message }] };
    }
    paint(get());
  }
  async function readOlder() {
    if (reading) return;
    reading = true;
    const mine = asked;
    const page = await api.allSessions(server.value, search.value.trim(), found.read).catch(toastProblem);
    if (mine !== asked) return;
    reading = false;
    if (page) found = joined(found, page);
    paint(get());
  }
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(() => read(), pause);
  };
  search.addEventListener("input", soon);
  server.addEventListener("change", () => read());
  fresh.addEventListener("click", () => acts.fresh(server.value || get().servers[0]?.name || ""));
  onEnter("sessions", () => read(found.items.length));

  async function pin(s, on) {
    const before = get().work.stickies.find((t) => t.server === s.server);
    const put = (t) => api.pin(s.server, t.thread_id, t.title ?? "");
    try {
      if (on) await put({ thread_id: s.id, title: s.title || s.label });
      else await api.forget(s.server);
      await acts.stickies();
    } catch (error) {
      return toastProblem(error);
    }
    const undo = async () => {
      await (before ? put(before) : api.forget(s.server)).then(acts.stickies).catch(toastProblem);
    };
    toast(on ? `What you say to ${s.server} now goes to “${s.title || s.label}”.` : `The next request on ${s.server} starts a new session.`, { tone: "info", action: { label: "Undo", run: undo } });
  }

  async function archive(s) {
    try {
      await api.archive(s.server, s.id, true);
      if (get().work.stickies.some((t) => t.server === s.server && t.thread_id === s.id)) await api.forget(s.server).then(acts.stickies);
    } catch (error) {
      return toastProblem(error);
    }
    const shown = found.items.length;
    await read(shown);
    const undo = () => api.archive(s.server, s.id, false).then(() => read(shown)).catch(toastProblem);
    toast(`“${s.title || s.label}” is archived.`, { tone: "info", action: { label: "Undo", run: undo } });
  }

  async function removeWorktree(s) {
    const sure = await confirmed({ title: "Remove this worktree?", text: `${s.worktree.branch} goes with it, and so do files that git ignores. git refuses it if anything else would be lost. The session ends.`, yes: "Remove worktree" });
    if (!sure) return;
    await api.removeWorktree(s.server, s.id).then(() => toast("The worktree is removed.", { tone: "info" }), toastProblem);
  }

  const rename = (s) => naming({
    title: "Rename this session",
    name: s.title || s.label || "",
    async give(name) {
      await api.renameSession(s.server, s.id, name);
      const used = get().work.stickies.find((t) => t.thread_id === s.id && t.server.split("/")[0] === s.server);
      if (used) await api.pin(used.server, s.id, name).then(acts.stickies).catch(toastProblem); // it is called so there, too
      await read(found.items.length);
      toast(`“${name}” is its name now.`, { tone: "info" });
    },
  });

  function row(first) {
    let s = first;
    const title = h("span", { class: "row-title" });
    const where = h("span", { class: "row-where" });
    const last = h("span", { class: "row-last" });
    const pill = h("span", { class: "pill" });
    const used = h("button", { class: "button small", type: "button", on: { click: () => pin(s, used.getAttribute("aria-pressed") !== "true") } });
    const called = h("button", { class: "button small", type: "button", text: "Rename", "aria-haspopup": "dialog", on: { click: () => rename(s) } });
    const away = h("button", { class: "button small", type: "button", text: "Archive", on: { click: () => archive(s) } });
    const tree = h("button", { class: "button small", type: "button", text: "Remove worktree", "aria-haspopup": "dialog", on: { click: () => removeWorktree(s) } });
    const open = h("button", { class: "row-open", type: "button", on: { click: () => acts.read(s) } },
      h("span", { class: "plug", "aria-hidden": "true" }), h("span", { class: "row-words" }, title, last, where), pill, icon("chevron"));
    const el = h("li", { class: `row ${hue(first.server)}` }, open, tree, used, called, away);
    return {
      el,
      update({ session, pinned, held, archives, renames, asks, there, work }) {
        s = session;
        const name = s.title || s.label || "A session without a title";
        const state = sessionPill(s.status, asks) ?? (work ? over(work) && outcomeWords(work) : s.last?.outcome && outcomeWords(s.last));
        const came = (work ? (over(work) ? work.spoken || work.text || work.error?.message : work.prompt) : s.last?.said) ?? "";
        setText(last, came.trim().split("\n", 1)[0].slice(0, 200));
        show(last, Boolean(last.textContent));
        setText(title, name);
        setText(where, [s.server, s.directory, s.branch, s.age, held && "open in another program", s.status === "waiting" && !asks && `waits for an answer where it was begun${there ? `: ${visible(there)}` : ""}`].filter(Boolean).join(" · "));
        show(pill, Boolean(state));
        if (state) {
          setText(pill, state.text);
          setAttr(pill, "data-tone", state.tone);
        }
        setText(used, pinned ? "Pinned" : "Pin");
        setAttr(used, "aria-pressed", String(pinned));
        setAttr(used, "aria-label", pinned ? `Pinned: ${name} on ${s.server}` : `Pin ${name} on ${s.server}`);
        setAttr(used, "title", pinned ? "What you say to this machine goes here. Press to unpin it: the next request starts a new session." : "Send what you say to this machine here");
        called.classList.toggle("unseen", !renames);
        setAttr(called, "aria-label", `Rename ${name}`);
        show(tree, Boolean(s.worktree));
        setAttr(tree, "aria-label", `Remove the worktree of ${name}`);
        away.classList.toggle("unseen", !archives);
        setAttr(away, "aria-label", `Archive ${name}`);
      },
    };
  }

  function paint(state) {
    const names = ["", ...state.servers.map((s) => s.name)];
    if (server.dataset.names !== names.join()) {
      server.dataset.names = names.join();
      const chosen = server.value;
      server.replaceChildren(...names.map((n) => h("option", { value: n, text: n || "All machines" })));
      server.value = names.includes(chosen) ? chosen : "";
    }
    const held = heldSessions(state.work);
    const pinned = (s) => state.work.stickies.some((t) => t.thread_id === s.id && t.server.split("/")[0] === s.server);
    const items = [...found.items].sort((a, b) => pinned(b) - pinned(a)); // the ones in use first
    // Questions of work that others began are theirs to answer.
    const asks = new Set(Object.values(state.work.questions).map((q) => state.work.records[q.handoff]).map((r) => r && `${r.server} ${r.thread_id}`));
    const there = new Map(state.servers.flatMap((m) => (m.asked_there ?? []).map((q) => [`${m.name} ${q.thread_id}`, q.text])));
    const newest = new Map();
    for (const r of newestFirst(state.work)) if (r.why !== "added" && !newest.has(`${r.server} ${r.thread_id}`)) newest.set(`${r.server} ${r.thread_id}`, r);
    keyed(list, items.map((session) => ({ session, work: newest.get(`${session.server} ${session.id}`), pinned: pinned(session), held: held.has(`${session.server} ${session.id}`), asks: asks.has(`${session.server} ${session.id}`), there: there.get(`${session.server} ${session.id}`), archives: Boolean(state.machines[session.server]?.archives), renames: Boolean(state.machines[session.server]?.renames) })), (v) => `${v.session.server} ${v.session.id}`, (v) => row(v.session));
    const problems = (found.errors ?? []).map((e) => e.message);
    setText(words, [...problems, !items.length && asked && !problems.length ? "No matches." : ""].filter(Boolean).join(" "));
    show(older, Boolean(found.more));
    setText(older, `Show older (${found.more})`);
    show(words, Boolean(words.textContent));
  }
  return (state) => {
    if (document.body.dataset.area !== "sessions") return;
    if (failed && state.feed === "live") read();
    paint(state);
  };
}
