// What needs the person: questions first, each once, then failures and lost machines; and their number, the same
// wherever it stands.

import { byId, h, keyed, setAttr, setText, show } from "./dom.js";
import { keyOf, needs } from "./state-needs.js";
import { questionCard } from "./view-question.js";
import { needCountWords, sentence } from "./words.js";

/** Wires the list. `acts`: decide(id, decision, text), dismiss(key), machine(name), show(id of work), again(id of work); hue(server). */
export function needsView(acts, hue) {
  const section = byId("needs");
  const questions = byId("questions");
  const alerts = byId("alerts");
  const counts = [byId("work-count"), byId("now-count")];
  let first = "";
  new ResizeObserver(() => section.parentElement.style.setProperty("--needs", `${section.offsetHeight}px`)).observe(section); // what is scrolled to stands below it
  return (state) => {
    const now = needs(state, Date.now());
    const answering = section.contains(document.activeElement);
    const inCall = state.call.phase !== "idle";
    keyed(questions, now.questions.map((q) => ({ ...q, inCall, lost: state.feed === "lost" })), (q) => q.id, (q) => questionCard(q, hue(q.server), acts.decide));
    keyed(alerts, now.alerts, keyOf, (item) => alertRow(item, hue, acts));
    show(section, now.count > 0);
    show(alerts, now.alerts.length > 0);
    setText(byId("needs-title"), `Needs you (${now.count})`);
    if (answering && !section.contains(document.activeElement)) byId("work-title").focus(); // what it was in is gone, the keyboard stays here
    const top = now.questions[0]?.id ?? "";
    const box = section.parentElement;
    if (top && top !== first && !box.contains(document.activeElement)) box.scrollTop = section.scrollTop = 0;
    first = top;
    for (const count of counts) {
      show(count, now.count > 0);
      setText(count, String(now.count || ""));
      setAttr(count, "aria-label", needCountWords(now.count));
    }
  };
}

function alertRow(item, hue, acts) {
  const failure = item.kind === "failure";
  const name = h("p", { class: "alert-name" });
  const what = h("p", { class: "alert-what" });
  const look = h("button", { class: "button small", type: "button", text: "Show", on: { click: () => (failure ? acts.show(item.id) : acts.machine(item.server)) } });
  const away = h("button", { class: "button small", type: "button", text: "Dismiss", on: { click: () => acts.dismiss(keyOf(item)) } });
  const copy = failure && heldElsewhere(item.record) ? h("button", { class: "button small", type: "button", text: "Go on in a copy…", on: { click: () => acts.again(item.id) } }) : null; // it is asked for before it is made
  const el = h("li", { class: `alert ${hue(item.server)}` }, h("div", { class: "alert-words" }, name, what), copy, look, away);
  return {
    el,
    update({ server, record: r, problem, next }) {
      const title = failure ? failedWords(server, r.title || r.prompt) : `${server} is offline`;
      setText(name, title.length > 80 ? `${title.slice(0, 79)}…` : title);
      setText(what, failure ? failureWords(r) : [sentence(problem || "Its agent server may not run."), next].filter(Boolean).join(" "));
      setAttr(look, "aria-label", `Show ${title.slice(0, 80)}`);
      setAttr(away, "aria-label", `Dismiss ${title.slice(0, 80)}`);
    },
  };
}

// What failed, and where, in a line.
const failedWords = (server, what) => `“${what.length > 60 ? `${what.slice(0, 59)}…` : what.replace(/[.!]$/, "")}” on ${server} failed`;

const heldElsewhere = (r) => r.error?.code === "session_in_use";
const failureWords = (r) => (heldElsewhere(r) ? `${r.error.message} Close it there and do it again, or go on in a copy.` : r.error ? r.error.message : r.outcome === "unknown" ? "It is not known whether this ran." : sentence(r.spoken || "It failed."));
