// One piece of work: a line that tells where it stands, and opens.

import { dress, h, icon, keepAtEnd, keyed, once, reachable, setAttr, setText, show } from "./dom.js";
import { ended, over, steps as stepsOf } from "./state-work.js";
import { answerFrame } from "./rich.js";
import { cardActs } from "./view-acts.js";
import { step } from "./view-steps.js";
import { ago, answerWords, askedBy, briefly, outcomeWords, placeWords, stepWords, timesWords, turnWords, whichWords, workFacts, workWords } from "./words.js";

/**
 * Makes a card. `acts` as in cardActs, and resend(id, i), read(id), open(id), which shows its own page, opened(id, on): it was unfolded or
 * folded. What is inside is made when it is unfolded first: a day's work is hundreds of lines.
 */
export function workCard({ record }, hue, acts) {
  const { id } = record;
  const body = h("div", { class: "card-body", id: `b-${id}` });
  const asked = h("span", { class: "line-asked" });
  const came = h("span", { class: "line-came" });
  const machine = h("span", { class: "line-machine", id: `m-${id}`, text: record.server });
  const when = h("span", { class: "line-when" });
  const state = h("span", { class: "pill" });
  const peek = h("button", { class: "line-peek", type: "button", "aria-controls": body.id, on: { click: () => acts.opened(id, body.hidden) } }, icon("chevron"));
  const line = h("button", { class: "line-open", type: "button", on: { click: () => acts.open(id) } },
    h("span", { class: "plug", "aria-hidden": "true" }), machine, h("span", { class: "line-words" }, asked, came));
  const stop = h("button", { class: "button small line-stop danger-quiet", type: "button", hidden: true, on: { click: () => { if (!stop.hasAttribute("aria-disabled")) acts.stop(id); } } });
  const el = h("article", { class: `card ${hue(record.server)}`, id: `card-${id}`, tabindex: "-1", "aria-labelledby": `m-${id}` },
    h("header", { class: "card-head" }, peek, h("h3", { class: "card-name" }, line), when, state, stop), body);
  let inside = null;
  let shown = "";
  let last;
  return {
    el,
    update(now) {
      const { record: r, waiting, stopping, read, open, seen, named, part, clock, under, turn } = now;
      const key = [waiting, stopping, read, open, seen, named, clock, under, turn.at, turn.of, now.unread].join();
      if (last?.record === r && last.part === part && shown === key) return;
      [last, shown] = [now, key];
      const words = workWords(r, waiting, stopping, seen);
      const doing = (r.items ?? []).at(-1) ?? r.step;
      const answer = ended(r) ? r.text || (r.outcome === "result" && r.spoken) || r.error?.message || "" : "";
      setText(asked, short(r.prompt));
      setText(came, [askedBy(r), attempts(part) && `attempt ${attempts(part) + 1}`, r.tests === "failed" && "tests fail",
        ended(r) ? short(answer) : r.waits ? turnWords(turn) || placeWords(r) : doing && stepWords(doing)].filter(Boolean).join(" · "));
      const since = Date.parse(r.ended_at ?? r.created_at);
      setText(when, briefly(since, Date.now()));
      setAttr(when, "title", `${ended(r) ? "ended" : r.waits ? "asked" : "began"} ${ago(since, Date.now())}`);
      setText(state, words.text);
      setAttr(state, "title", words.text); // where its mark stands alone
      setAttr(state, "data-tone", words.tone);
      show(machine, named);
      show(stop, !ended(r) && !waiting && !seen); // its question offers that
      dress(stop, r.waits ? "close" : "stop", r.waits ? "Drop" : "Stop");
      setAttr(stop, "aria-label", `${r.waits ? "Drop" : "Stop"}: ${whichWords(r)}`);
      setAttr(stop, "aria-disabled", stopping ? "true" : null);
      setAttr(peek, "aria-expanded", String(open));
      setAttr(peek, "aria-label", `${open ? "Fold" : "Unfold"}: ${short(r.prompt).slice(0, 60)}`);
      el.classList.toggle("over", over(r));
      el.classList.toggle("under", under);
      el.classList.toggle("folded", !open);
      show(body, open);
      if (!open && !inside) return;
      inside ??= insideOf(id, body, acts);
      inside(now);
    },
  };
}

// How often it was tried before; what was not begun is no attempt.
const attempts = (part) => part?.tries.filter((r) => r.outcome !== "cancelled").length ?? 0;

// What a card shows when it is open.
function insideOf(id, body, acts) {
  const meta = h("p", { class: "card-meta" });
  const prompt = reachable(h("p", { class: "card-prompt" }));
  const stepsTitle = h("span", {});
  const steps = reachable(h("div", { class: "steps", role: "group", "aria-label": "Steps" }));
  const reading = h("p", { class: "quiet-text", hidden: true });
  const answer = answerFrame();
  const problem = h("div", { class: "problem", hidden: true });
  const unheard = h("ul", { class: "unheard", "aria-label": "Words that it never heard", hidden: true });
  const added = h("ul", { class: "added", "aria-label": "Words that were added", hidden: true });
  const tries = h("ul", { class: "added", "aria-label": "Earlier attempts", hidden: true });
  const answers = h("ul", { class: "answers", "aria-label": "Questions that were answered" });
  const whole = h("button", { class: "button small", type: "button", text: "Show all of it", hidden: true, on: { click: () => acts.read(id) } });
  const foot = cardActs(id, acts);
  let touched = false;
  let has = false; // what its details show; else they are read when they are opened
  let wasEnded = null;
  const details = h("details", { class: "did" }, h("summary", { on: { click: () => { touched = true; } } }, icon("chevron"), stepsTitle), reading, steps, answers);
  details.addEventListener("toggle", () => { if (details.open && !has) acts.read(id); });
  body.append(meta, prompt, added, details, answer.el, problem, unheard, tries, whole, foot.el);
  return ({ record: r, waiting, read, unread: more, open, seen, part, turn }) => {
    if (wasEnded === null) details.open = !ended(r);
    else if (ended(r) && !wasEnded && !touched) details.open = false;
    wasEnded = ended(r);
    setText(meta, metaOf(r));
    setText(prompt, r.prompt);
    show(prompt, r.prompt.trim() !== short(r.prompt)); // else the line has all of it
    answer.fill(r.server, ended(r) ? r.text || (r.outcome === "result" && r.spoken) || "" : "", outcomeWords(r).tone === "good");
    show(problem, Boolean(r.error));
    if (r.error) showProblem(problem, r);
    foot.update(r, { seen, turn });
    fillAnswers(answers, r.answers ?? []);
    fillUnheard(unheard, r, acts.resend);
    fillAdded(added, part?.added ?? []);
    fillTries(tries, (part?.tries ?? []).filter((t) => t.outcome !== "cancelled"));
    const did = stepsOf(r);
    const count = Math.max(did.length, read === "whole" ? 0 : r.item_count ?? 0);
    show(details, count > 0 || (r.answers ?? []).length > 0);
    setAttr(steps, "aria-label", `Steps: ${whichWords(r)}`);
    setText(stepsTitle, count === 0 ? "What you were asked" : ended(r) ? `What it did (${count})` : `What it does (${count})`);
    has = !more && read !== "failed";
    if (more && details.open && open) acts.read(r.id);
    show(reading, count > did.length && Boolean(read));
    setText(reading, read === "failed" ? "This could not be read. Close it and open it again to try once more." : "Reading…");
    show(whole, Boolean(r.clipped));
    setAttr(whole, "aria-disabled", read === "reading" ? "true" : null);
    if (open) keepAtEnd(steps, () => keyed(steps, shownSteps(r, did, waiting), (i) => i.id, step));
  };
}

/** What is said of a piece of work in a line: where, when, how much. */
export function metaOf(r) {
  return [r.title && !same(r.title, r.prompt) && r.title, r.project && `project ${r.project}`, !r.paused && r.thread_id && placeWords(r), r.worktree && `worktree on ${r.worktree.branch}`, timesWords(r, Date.now()), ...workFacts(r)].filter(Boolean).join(" · ");
}

/** What runs while something is asked does not run: it waits for the answer. What ran when it ended was stopped with it. */
export function shownSteps(r, steps, waiting) {
  const cut = (i) => i.state === "running" || (r.outcome === "interrupted" && i.state === "failed" && i.exit === undefined);
  if (ended(r)) return steps.map((i) => (cut(i) ? { ...i, state: "stopped" } : i));
  return waiting ? steps.map((i) => (i.state === "running" ? { ...i, asks: true } : i)) : steps;
}

/** Shows who answered what, how and when. */
export function fillAnswers(el, answers) {
  show(el, answers.length > 0);
  if (el.childElementCount !== answers.length) el.replaceChildren(...answers.map((a) => h("li", { text: answerWords(a) })));
}

/** Shows the words that were added to it while it ran, each with what became of it. */
export function fillAdded(el, records) {
  show(el, records.length > 0);
  keyed(el, records, (r) => r.id, () => {
    const words = h("span", {});
    const fate = h("span", { class: "quiet-text" });
    return {
      el: h("li", {}, words, " ", fate),
      update(r) {
        setText(words, `Added: “${short(r.prompt)}”`);
        setText(fate, !ended(r) ? "on its way" : r.outcome === "result" ? `heard ${ago(Date.parse(r.ended_at ?? r.created_at), Date.now())}` : r.error?.message || "not heard");
      },
    };
  });
}

// The attempts before this one, which came to nothing.
function fillTries(el, records) {
  show(el, records.length > 0);
  keyed(el, records.map((r, i) => ({ r, i })), (t) => t.r.id, () => {
    const words = h("span", {});
    return { el: h("li", {}, words), update: ({ r, i }) => setText(words, `Attempt ${i + 1}, ${ago(Date.parse(r.ended_at ?? r.created_at), Date.now())}: ${r.error?.message || outcomeWords(r).text}`) };
  });
}

/** Shows the words that it took and never heard: nothing was begun for them, and they can be given once more. */
export function fillUnheard(el, r, resend, key = "u") {
  const words = r.undelivered ?? [];
  show(el, words.length > 0);
  keyed(el, words.map((text, i) => ({ text, i })), (w) => w.i, ({ i }) => {
    const said = h("p", { id: `${key}-${r.id}-${i}` });
    const send = h("button", { class: "button small", type: "button", text: "Send again", "aria-describedby": said.id });
    send.addEventListener("click", once(async () => {
      if (send.getAttribute("aria-disabled") === "true") return;
      setAttr(send, "aria-disabled", "true");
      await resend(r.id, i);
      setAttr(send, "aria-disabled", null);
    }));
    return { el: h("li", {}, said, send), update: ({ text }) => setText(said, `Not heard: “${text}”`) };
  });
}

// The beginning of a text, as a line shows it.
const short = (text) => (text.trim().split("\n", 1)[0] ?? "").replaceAll("`", "").slice(0, 200);

// A new session is often called by its first request: once is enough.
const same = (a, b) => a.trim().toLowerCase() === b.trim().toLowerCase();

/** Shows what went wrong with work; that a person stopped it, or what it waited for, did not. */
export function showProblem(el, { error, outcome, paused }) {
  const calm = paused || outcome === "cancelled";
  el.classList.toggle("calm", Boolean(calm));
  fillProblem(el, calm ? { message: error.message } : error);
}

function fillProblem(el, error) {
  const key = JSON.stringify(error);
  if (el.dataset.key === key) return;
  el.dataset.key = key;
  el.replaceChildren(
    h("p", { class: "problem-what", text: error.message }),
    ...(error.next ? [h("p", { class: "problem-next", text: error.next })] : []),
    ...(error.detail ? [h("pre", { class: "mono problem-detail", text: error.detail })] : []));
}
