// What waits for the person: the questions and their number, the same wherever it stands; and apart from them what went
// wrong, a line a cause.

import { byId, h, keyed, once, setAttr, setText, show } from "./dom.js";
import { keysOf, needs } from "./state-needs.js";
import { questionCard } from "./view-question.js";
import { needCountWords, sentence } from "./words.js";

const atFirst = 3; // lines of what went wrong; the others on wish
export const narrow = matchMedia("(max-width: 759px) and (min-height: 501px), (max-width: 559px), (min-width: 560px) and (max-height: 500px)"); // one area at a time

/**
 * Wires the list. `acts`: free() lets the rows below it move, decide(id, decision, answers), dismiss(keys), machine(name), show(item) of failures, again(records); hue(server)
 * gives a machine's colour.
 */
export function needsView(acts, hue) {
  const section = byId("needs");
  const questions = byId("questions");
  const counts = [byId("work-count"), byId("now-count")];
  const box = section.parentElement;
  const troubles = troubleList(acts, hue);
  let first = "";
  new ResizeObserver(() => box.style.setProperty("--needs", `${section.offsetHeight}px`)).observe(section); // what is scrolled to stands below it
  return (state) => {
    const now = needs(state, Date.now());
    const answering = section.contains(document.activeElement);
    const inCall = state.call.phase !== "idle";
    keyed(questions, now.questions.map((q) => ({ ...q, inCall, lost: state.feed === "lost" })), (q) => q.id, (q) => questionCard(q, hue(q.server), acts.decide));
    show(section, now.count > 0);
    setText(byId("needs-title"), `Needs you (${now.count})`);
    if (answering && !section.contains(document.activeElement)) byId("work-title").focus(); // what it was in is gone, the keyboard stays here
    const top = now.questions[0]?.id ?? "";
    if (top && top !== first && !box.contains(document.activeElement)) {
      acts.free();
      box.scrollTop = section.scrollTop = 0;
    }
    first = top;
    for (const count of counts) {
      show(count, now.count > 0);
      setText(count, String(now.count || ""));
      setAttr(count, "aria-label", needCountWords(now.count));
    }
    troubles(now.troubles);
  };
}

// What went wrong. Where there is room for one area at a time it stands below the work that goes on.
function troubleList(acts, hue) {
  const section = byId("troubles");
  const list = byId("alerts");
  const more = byId("troubles-more");
  const jump = byId("troubles-open");
  let all = false;
  let items = [];
  const place = () => (narrow.matches ? byId("cards").after(section) : byId("needs").after(section));
  narrow.addEventListener("change", place);
  place();
  more.addEventListener("click", () => { all = !all; draw(items); });
  jump.addEventListener("click", () => {
    section.scrollIntoView({ block: "start" });
    section.querySelector("button")?.focus({ preventScroll: true });
  });
  function draw(now) {
    items = now;
    const had = section.contains(document.activeElement);
    keyed(list, all ? items : items.slice(0, atFirst), (item) => `${item.kind} ${item.id}`, (item) => alertRow(item, hue, acts));
    show(section, items.length > 0);
    show(more, items.length > atFirst);
    setText(more, all ? "Show fewer" : `Show ${items.length - atFirst} more`);
    setAttr(more, "aria-expanded", String(all));
    const failed = items.reduce((n, i) => n + (i.records?.length ?? 1), 0);
    show(jump, failed > 0);
    setText(jump, `${failed} went wrong`);
    if (had && !section.contains(document.activeElement)) byId("work-title").focus();
  }
  return draw;
}

function alertRow(first, hue, acts) {
  let item = first;
  const failure = first.kind === "failure";
  const name = h("p", { class: "alert-name" });
  const what = h("p", { class: "alert-what" });
  const button = (text, act) => h("button", { class: "button small", type: "button", text, on: { click: act } });
  const look = button("Show", () => (failure ? acts.show(item) : acts.machine(item.server)));
  const again = failure ? button("Try again", once(() => acts.again(item.records))) : null;
  const away = button("Dismiss", () => acts.dismiss(keysOf(item)));
  const copy = failure && heldElsewhere(first.records[0]) ? button("Go on in a copy…", once(() => acts.again([item.records[0]]))) : null; // it is asked for before it is made
  const el = h("li", { class: `alert ${hue(first.server)}` }, h("div", { class: "alert-words" }, name, what), h("div", { class: "alert-acts" }, copy, look, copy ? null : again, away));
  return {
    el,
    update(now) {
      item = now;
      const many = failure && item.records.length > 1;
      const title = !failure ? `${item.server} is offline` : many ? `${item.records.length} failed on ${item.server}` : failedWords(item.server, item.records[0].title || item.records[0].prompt);
      setText(name, title);
      setText(what, failure ? causeWords(item) : [sentence(item.problem || "Its agent server may not run."), item.next].filter(Boolean).join(" "));
      setText(away, many ? "Dismiss all" : "Dismiss");
      for (const [b, verb] of [[look, "Show"], [again, "Try again"], [away, away.textContent]]) if (b) setAttr(b, "aria-label", `${verb}: ${title}`);
    },
  };
}

// What failed, and where, in a line.
const failedWords = (server, what) => `“${what.length > 60 ? `${what.slice(0, 59)}…` : what.replace(/[.!]$/, "")}” on ${server} failed`;

const heldElsewhere = (r) => r.error?.code === "session_in_use";
const causeWords = ({ cause, records: [r] }) => (heldElsewhere(r) ? `${r.error.message} Close it there and do it again, or go on in a copy.` : sentence(cause));
