// What was said and what was done, by day: found by words, saved as Markdown or JSON, deleted.

import * as api from "./api.js";
import { confirmed } from "./confirm.js";
import { byId, h, icon, keyed, reachable, setAttr, setText, show } from "./dom.js";
import { onEnter } from "./places.js";
import { steps as stepsOf } from "./state-work.js";
import { fenced, harmless } from "./rich-markdown.js";
import { answerFrame } from "./rich.js";
import { toastProblem } from "./store.js";
import { fillAnswers, showProblem, shownSteps } from "./view-card.js";
import { step } from "./view-steps.js";
import { paragraphs } from "./view-text.js";
import { answerWords, askedBy, clockWords, localMoment, outcomeWords, workFacts } from "./words.js";

const pause = 300;
const mostPages = 60; // of each kind, in what is saved
const atOnce = 6; // pieces of work that are read whole for it

/** Wires the history and returns its view; hue(server) gives a machine's colour, `settings` whether it is kept, changed(name) keeps that. */
export function historyView({ settings, changed }, hue) {
  const search = h("input", { id: "history-search", class: "text-field", type: "search", placeholder: "Search the history", maxlength: 200, autocomplete: "off" });
  const words = h("p", { class: "quiet-text", role: "status" });
  const list = h("div", { class: "days" });
  const older = h("button", { class: "button", type: "button", text: "Show older", hidden: true });
  const keep = h("input", { type: "checkbox", on: { change: () => { settings.history = keep.checked; changed("history"); } } });
  keep.checked = settings.history;
  const button = (text, f, cls = "button small") => h("button", { class: cls, type: "button", text, on: { click: f } });
  byId("history").append(
    h("div", { class: "area-head" }, h("h2", { id: "history-title", class: "area-title", tabindex: "-1", text: "History" })),
    h("div", { class: "tools" }, h("label", { class: "tool-field" }, h("span", { class: "sr", text: "Search the history" }), search),
      button("Save as Markdown", () => save("md"), "button"), button("Save as JSON", () => save("json"), "button")),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "What was said and done" }, words, list, older,
      h("div", { class: "history-foot" }, h("label", { class: "check" }, keep, "Keep what is said and heard on this browser"), button("Delete conversation…", drop, "button small danger-quiet"))));

  let found = []; // { at, line } or { at, work }, newest first
  let next = { said: "", work: "" };
  let asked = 0;
  let timer = 0;
  let failed = false;

  // One page of each kind; "" asks for the newest, null: there are no more.
  async function page({ said, work }, text) {
    const none = { items: [] };
    const [a, b] = await Promise.all([said === null ? none : api.said(text, said), work === null ? none : api.history(text, work)]);
    return {
      items: [...a.items.map((line) => ({ at: line.at, line })), ...b.items.map((w) => ({ at: w.at, work: w }))],
      next: { said: a.next ?? null, work: b.next ?? null },
    };
  }
  async function read(more) {
    const mine = ++asked;
    failed = false;
    if (!more) setText(words, "Looking…");
    try {
      const got = await page(more ? next : { said: "", work: "" }, search.value.trim());
      if (mine !== asked) return;
      found = [...(more ? found : []), ...got.items].sort((a, b) => (a.at < b.at ? 1 : -1));
      next = got.next;
      paint();
    } catch (error) {
      if (mine !== asked) return;
      failed = !error.status || error.status >= 500; // it is read again once Switchboard is back
      setText(words, failed ? `${error.message} This is read as soon as it is back.` : error.message);
      show(words, true);
    }
  }
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => read(false), pause);
  });
  older.addEventListener("click", () => read(true));
  onEnter("history", () => read(false));

  function paint() {
    const days = Map.groupBy(found, (f) => new Date(f.at).toLocaleDateString(undefined, { weekday: "long", day: "numeric", month: "long" }));
    list.replaceChildren(...[...days].map(([day, items]) => h("section", { class: "day" }, h("h3", { class: "day-name", text: day }),
      h("ul", { class: "rows" }, ...items.map((f) => (f.line ? lineRow(f.line) : workRow(f.work, hue)))))));
    setText(words, found.length ? "" : search.value.trim() ? "No matches." : "Nothing yet. What you say and what your machines do will appear here.");
    show(words, Boolean(words.textContent));
    show(older, next.said !== null || next.work !== null);
  }

  async function save(kind) {
    try {
      const all = [];
      let from = { said: "", work: "" };
      for (let i = 0; i < mostPages && (from.said !== null || from.work !== null); i++) {
        const got = await page(from, search.value.trim());
        all.push(...got.items);
        from = got.next;
      }
      all.sort((a, b) => (a.at < b.at ? -1 : 1));
      await readWhole(all.filter((f) => f.work));
      if (kind === "md") for (const f of all) if (f.work) f.work = await saved(f.work);
      const text = kind === "json" ? `${JSON.stringify(all.map((f) => (f.line ? { said: { ...f.line, at: localMoment(f.at) } } : { work: { ...f.work, at: localMoment(f.at) } })), null, 2)}\n` : asMarkdown(all);
      const url = URL.createObjectURL(new Blob([text], { type: kind === "json" ? "application/json" : "text/markdown" }));
      h("a", { href: url, download: `switchboard-${new Date().toISOString().slice(0, 10)}.${kind}` }).click();
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
    } catch (error) {
      toastProblem(error);
    }
  }

  async function drop() {
    if (!(await confirmed({ title: "Delete the conversation?", text: "This deletes everything that was said and heard, on every device, and cannot be undone. Your work stays in the history.", yes: "Delete it" }))) return;
    await api.dropSaid().then(() => read(false), toastProblem);
  }
  return ({ feed }) => { if (failed && feed === "live" && document.body.dataset.area === "history") read(false); };
}

// Reads what was done. Of work that is forgotten meanwhile, its entry is saved.
async function readWhole(all) {
  for (let i = 0; i < all.length; i += atOnce) {
    await Promise.all(all.slice(i, i + atOnce).map(async (f) => {
      try {
        f.work = { ...f.work, tests: "", ...(await api.past(f.work.id)) };
      } catch (error) {
        if (error.code !== "not_found") throw error;
      }
    }));
  }
}

// What agents wrote of a piece of work, as it may be saved.
const saved = async (w) => ({ ...w, text: await harmless(w.text), items: w.items && await Promise.all(w.items.map(async (i) => (i.kind === "command" || i.kind === "file_change" ? i : { ...i, text: await harmless(i.text) }))) });

const clock = (at) => h("time", { class: "quiet-text", datetime: at, title: localMoment(at), text: clockWords(at) });

const callRow = (line) => h("li", { class: "past-line past-call" }, clock(line.at), h("p", { class: "quiet-text", text: line.text }));

const lineRow = (line) => (line.who === "call" ? callRow(line) : h("li", { class: `past-line ${line.who}` }, clock(line.at), h("span", { class: "past-who", text: line.who === "you" ? "You" : "Voice" }), h("p", { text: line.text })));

function workRow(w, hue) {
  const { text, tone } = outcomeWords(w);
  const body = h("div", { class: "past-body" });
  const mark = h("span", { class: "pill", data: { tone }, text });
  const details = h("details", { class: `past-work ${hue(w.server)}` },
    h("summary", {}, clock(w.at), h("span", { class: "plug", "aria-hidden": "true" }), h("span", { class: "past-words" }, h("strong", { text: w.server }), ` ${w.title || ""} `, h("span", { class: "quiet-text", text: w.prompt })),
      mark), body);
  let known = false;
  details.addEventListener("toggle", async () => {
    if (!details.open || known) return;
    known = true;
    paragraphs(body, "Reading…");
    try {
      const r = { ...w, tests: "", state: "delivered", ...(await api.past(w.id)) };
      fillWork(body, r);
      const end = outcomeWords(r);
      setText(mark, end.text);
      setAttr(mark, "data-tone", end.tone);
    } catch (error) {
      known = false;
      paragraphs(body, `${w.spoken || ""}\n\n${error.message} Close it and open it again to try once more.`);
    }
  });
  return h("li", {}, details);
}

// Work with what it did, as its card showed it.
function fillWork(body, r) {
  const steps = stepsOf(r);
  const list = h("div", { class: "steps" });
  const answers = h("ul", { class: "answers", "aria-label": "Questions that were answered" });
  keyed(list, shownSteps(r, steps), (i) => i.id, step);
  fillAnswers(answers, r.answers ?? []);
  const answer = answerFrame();
  answer.fill(r.server, r.text || (r.spoken !== r.error?.message && r.spoken) || "", r.outcome === "result" && r.tests !== "failed");
  const wrong = h("div", { class: "problem" });
  if (r.error) showProblem(wrong, r);
  const facts = [r.outcome === "cancelled" && !r.spoken && !r.error && "it was not begun", ...workFacts(r)].filter(Boolean).join(" · ");
  const parts = [
    reachable(h("p", { class: "card-prompt", text: r.prompt })), facts && h("p", { class: "quiet-text", text: facts }),
    (steps.length || r.answers?.length) && h("details", { class: "did" }, h("summary", {}, icon("chevron"), `What it did (${steps.length})`), list, answers),
    answer.el, r.error && wrong,
  ];
  body.shownText = undefined; // the words of paragraphs are gone
  body.replaceChildren(...parts.filter(Boolean));
}

/** The history as Markdown, oldest first. */
export function asMarkdown(all) {
  const out = ["# Switchboard"];
  let day = "";
  for (const f of all) {
    const at = localMoment(f.at);
    if (at.slice(0, 10) !== day) out.push(`\n## ${(day = at.slice(0, 10))}`);
    const time = `${at.slice(11, 16)} ${at.slice(19)}`;
    if (f.line?.who === "call") out.push(`\n*${f.line.text}* (${time})`);
    else if (f.line) out.push(`\n**${f.line.who === "you" ? "You" : "Voice"}** (${time}): ${f.line.text}`);
    else out.push(workMarkdown(f.work, time));
  }
  return `${out.join("\n")}\n`.replaceAll("\r", "");
}

function workMarkdown(w, time) {
  const head = `**${w.server}**${w.title ? ` · ${w.title}` : ""} (${[time, askedBy(w)].filter(Boolean).join(", ")}): ${w.prompt}\n\n${outcomeWords(w).text}${w.spoken ? `: ${w.spoken}` : ""}`;
  const answers = (w.answers ?? []).map((a) => `- ${answerWords(a)}`).join("\n");
  return ["", quoted(head), ...stepsOf(w).map(stepMarkdown), answers, w.text && w.text !== w.spoken ? quoted(w.text) : ""].filter((t, i) => !i || t).join("\n\n").slice(1);
}

const quoted = (text) => text.split("\n").map((l) => `> ${l}`.trimEnd()).join("\n");

function stepMarkdown(i) {
  if (i.kind === "command") return fenced("", `$ ${i.text}\n${i.output ?? ""}`);
  if (i.kind === "file_change" && i.changes?.length) return i.changes.map((c) => fenced("diff", `${c.to ? `${c.path} → ${c.to}` : c.path}\n${c.diff ?? ""}`)).join("\n\n");
  return i.text;
}
