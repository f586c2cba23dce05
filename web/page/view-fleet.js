// The machines: health, the session in use, recent sessions.

import { byId, h, icon, keyed, setAttr, setText, show } from "./dom.js";
import { ended, ofServers, openQuestions } from "./state-work.js";
import { setup, startHelps } from "./view-setup.js";
import { healthWords, sentence, sessionStatus, visible } from "./words.js";

/** Wires the machines. `acts`: sessions(server) reads them, read(session), forget(server). */
export function fleetView(acts, hue) {
  const list = byId("machines");
  return (state) => {
    const seen = new Set(state.servers.map((s) => s.name));
    const stray = state.work.stickies.map((s) => s.server.split("/")[0]).filter((name) => !seen.has(name));
    const gone = [...new Set(stray)].map((name) => ({ name, health: "down", problem: "It is no longer in the configuration.", kind: "" }));
    const mixed = state.servers.some((s) => !s.simulated); // else the badge says it for all
    const asks = new Set(openQuestions(state.work).map((q) => q.server));
    const works = ofServers(state.work);
    const items = [...state.servers, ...gone].map((server) => ({
      server, mixed, feed: state.feed, waits: asks.has(server.name),
      works: (works.get(server.name) ?? []).some((r) => !ended(r)), history: historyOf(works.get(server.name) ?? [], server), found: state.sessions[server.name], about: state.machines[server.name],
      stickies: state.work.stickies.filter((s) => s.server === server.name || s.server.startsWith(server.name + "/")),
    }));
    keyed(list, items, (i) => i.server.name, (i) => machine(i, hue, acts));
    show(byId("no-machines"), state.loaded && items.length === 0);
    keyed(byId("instance-list"), state.instances, (i) => i.id, instance);
    show(byId("instances"), state.instances.length > 1);
  };
}

// What is newer than a list of sessions: work there began or ended, or the machine came or went.
const historyOf = (records, { health }) => [health, ...records.slice(0, 50).map((r) => r.id + ended(r) + r.thread_id)].join(" ");

const fresh = 60_000; // ages in a list of sessions hold so long

function machine({ server }, hue, acts) {
  const id = `machine-${server.name}`;
  const health = h("span", { class: "pill" });
  const stand = h("span", { class: "tag", text: "simulated" });
  const brief = h("span", { class: "machine-brief" });
  const body = h("div", { class: "machine-body", id: `${id}-body`, hidden: true });
  const line = h("button", { class: "machine-line", type: "button", "aria-expanded": "false", "aria-controls": body.id, on: { click: () => open(body.hidden) } },
    icon("chevron"), h("span", { class: "plug", "aria-hidden": "true" }), h("span", { class: "plug-name", id, text: server.name }), brief, health);
  const open = (on) => {
    show(body, on);
    setAttr(line, "aria-expanded", String(on));
    if (on && !recent.hidden) look();
  };
  const problem = h("p", { class: "machine-problem" });
  const next = h("p", { class: "quiet-text" }); // the one thing to do about it
  const doing = h("p", { class: "machine-doing" });
  const asked = h("ul", { class: "asked-there" });
  const used = h("div", { class: "stickies" });
  const none = h("p", { class: "quiet-text", text: "None of its sessions is in use yet; the next request starts a new one." });
  const recent = h("div", { class: "recent", hidden: true, id: `${id}-recent` });
  const about = setup(server.name);
  const opener = h("button", { class: "opener", type: "button", "aria-expanded": "false", "aria-controls": recent.id, "aria-label": `Recent sessions: ${server.name}` }, icon("chevron"), "Recent sessions");
  opener.addEventListener("click", () => {
    const open = recent.hidden;
    recent.hidden = !open;
    setAttr(opener, "aria-expanded", String(open));
    if (open) look();
  });
  let shown = ""; // the history that the list knows
  let now = "";
  let at = 0;
  const look = () => {
    [shown, at] = [now, Date.now()];
    acts.sessions(server.name);
  };
  body.append(stand, problem, next, doing, asked, used, none, about.el, opener, recent);
  const el = h("section", { class: `machine ${hue(server.name)}`, tabindex: "-1", "aria-labelledby": id }, h("h3", { class: "machine-name" }, line), body);
  const fillRecent = recentList(recent, acts);
  return {
    el,
    update({ server: s, stickies, found, mixed, feed, waits, works, history, about: told }) {
      now = history;
      if (!recent.hidden && !body.hidden && (shown !== now || Date.now() - at > fresh)) look();
      const words = healthWords(s, waits, works, feed);
      setText(health, words.text);
      setAttr(health, "data-tone", words.tone);
      show(stand, Boolean(s.simulated) && mixed);
      const known = feed !== "lost";
      const trouble = known && s.health !== "connecting" && Boolean(s.problem); // what is up may refuse all work
      setText(problem, trouble ? sentence(s.problem) : "");
      show(problem, trouble);
      setText(next, s.next ?? "");
      show(next, trouble && Boolean(s.next) && !startHelps(s, told));
      const others = (s.working ?? []).filter((title) => !stickies.some((t) => t.title === title));
      setText(doing, others.length ? `Working on ${others.join(", ")}` : "");
      show(doing, known && others.length > 0);
      const there = known ? (s.asked_there ?? []) : [];
      keyed(asked, there, (q) => q.thread_id + q.text, askedThere);
      show(asked, there.length > 0);
      keyed(used, stickies, (t) => `${t.server} ${t.thread_id}`, (t) => sticky(t, acts));
      show(none, stickies.length === 0 && s.health !== "down");
      const refuses = trouble && s.health === "up";
      if (refuses && !el.classList.contains("refuses")) open(true); // what to change is in there
      el.classList.toggle("refuses", refuses);
      setText(brief, trouble ? sentence(s.problem) : there.length ? "asks there" : others[0] ?? stickies[0]?.title ?? "");
      setAttr(brief, "title", brief.textContent);
      about.update(s, told);
      if (!recent.hidden) fillRecent(found);
    },
  };
}

// An instance of Switchboard, where several are one.
function instance(first) {
  const here = h("span", { class: "pill", "data-tone": "good", text: "serves you" });
  const ends = h("span", { class: "pill", "data-tone": "busy", text: "is ending" });
  const el = h("li", {}, h("span", { class: "mono instance-address", text: first.address }), here, ends);
  return {
    el,
    update(now) {
      show(here, Boolean(now.here));
      show(ends, Boolean(now.draining));
    },
  };
}

// What others are asked there: to be known, and answered where their work was begun.
function askedThere(q) {
  const el = h("li", {}, "Asked there in ", h("strong", { text: q.title || "a session without a title" }), ": ", h("span", { class: "mono", text: visible(q.text) }), " Answer it where that work was begun.");
  return { el, update() {} };
}

function sticky(t, acts) {
  const project = t.server.split("/")[1];
  const title = h("strong", {});
  const button = h("button", { class: "button small", type: "button", text: "Unpin", on: { click: () => acts.forget(t.server) } });
  const el = h("div", { class: "sticky" },
    h("p", {}, h("span", { class: "quiet-text", text: project ? `Session in ${project}: ` : "Session: " }), title), button);
  return {
    el,
    update(now) {
      setText(title, now.title || "a session without a title");
      setAttr(button, "aria-label", `Unpin ${now.title || "the session"} on ${now.server}`);
      setAttr(button, "title", "The next request without a session starts a new one");
    },
  };
}

function recentList(box, acts) {
  const words = h("p", { class: "quiet-text" });
  const list = h("ul", { class: "sessions" });
  box.append(words, list);
  return (found) => {
    const items = found?.items ?? [];
    const text = !found || (found.state === "loading" && !items.length) ? "Looking…"
      : found.state === "failed" ? found.problem
      : items.length === 0 ? "No sessions yet."
      : found.more ? `The newest ${items.length} of ${items.length + found.more}.` : "";
    setText(words, text);
    show(words, Boolean(text));
    keyed(list, items, (s) => s.id, (s) => sessionRow(s, acts));
  };
}

function sessionRow(first, acts) {
  let session = first;
  const title = h("span", { class: "session-title" });
  const where = h("span", { class: "session-where" });
  const el = h("li", {}, h("button", { class: "session", type: "button", on: { click: () => acts.read(session) } }, title, where));
  return {
    el,
    update(s) {
      session = s;
      setText(title, s.title || s.label);
      setText(where, [s.age, sessionStatus[s.status], s.branch, s.directory?.split("/").filter(Boolean).at(-1)].filter(Boolean).join(" · "));
    },
  };
}
