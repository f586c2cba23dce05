// Approvals: what an agent waits for, with exactly what it would do.

import { h, icon, setAttr, setText, show } from "./dom.js";
import { firstWord, secondAct } from "./second-act.js";
import { steady } from "./steady.js";
import { answerForm } from "./view-answer.js";
import { decisionWords, givesUpWords, questionWords, riskWords, unwrapped, visible, voiceWords } from "./words.js";

const look = { accept: "primary", accept_for_session: "", decline: "", stop: "danger-quiet" };

/** Makes the card of a question; decide(id, decision, answers) answers it; in words the decision is "words". */
export function questionCard(q, hue, decide) {
  const title = h("h3", { class: "question-title", id: `q-${q.id}`, text: questionWords(q) });
  const order = ["accept", "accept_for_session", "decline", "stop"].filter((d) => (q.decisions ?? []).includes(d));
  const sending = h("p", { class: "question-sending", role: "status" });
  // What is of high risk is not the green one, and takes a second act. To open a link is the first of two.
  const twice = q.risk === "high" && !q.url && order.includes("accept") ? secondAct(q.id, firstWord(unwrapped(q.command ?? "")), (event, d) => { if (!gone && counts(event)) decide(q.id, d); }) : null;
  const careful = (d) => twice && d.startsWith("accept");
  const buttons = order.map((d) => {
    const b = h("button", { class: `button ${careful(d) ? "careful" : look[d]}`, type: "button", data: { decision: d } }, d === "stop" ? icon("stop") : null, h("span", { text: decisionWords(q, d) }));
    if (careful(d)) twice.wire(b, d);
    else b.addEventListener("click", (event) => { if (!gone && counts(event)) decide(q.id, d); });
    return b;
  });
  const answer = q.words ? answerForm(q, (answers) => { if (!gone && counts()) decide(q.id, "words", answers); }) : null;
  const ours = q.kind === "copy"; // asked by Switchboard, not by an agent
  const how = h("span", { class: "question-voice", text: voiceWords(q, q.inCall) });
  const until = h("span", { class: "question-until" });
  const [risk, because] = riskWords(q) ?? [];
  const command = q.command ? visible(unwrapped(q.command)) : "";
  const lines = command.split("\n").length;
  const el = h("section", { class: `question ${hue}`, role: "group", tabindex: "-1", data: { handoff: q.handoff }, "aria-labelledby": `q-${q.id}` },
    h("header", { class: "question-head" }, title,
      q.title ? h("p", { class: "question-session" }, ours ? "The session " : "in ", h("strong", { text: q.title })) : null),
    ours && q.reason ? h("p", { class: "question-text", text: q.reason }) : null,
    q.person ? h("p", { class: "question-text", text: "Codex wants a person to decide this. It is allowed once, and asked again the next time." }) : null,
    q.text && !q.command && (!q.words || q.asks?.length > 1 && !q.asks.some((a) => q.text.includes(a.text))) ? h("p", { class: "question-text", text: q.text }) : null,
    q.url?.startsWith("https://") ? h("p", { class: "question-link" }, h("a", { class: "button primary", href: q.url, target: "_blank", rel: "noopener noreferrer", text: `Open ${new URL(q.url).host}` }), h("span", { class: "mono", text: visible(q.url) })) : null,
    q.command ? h("pre", { class: "mono question-command", "aria-label": "Command", tabindex: "0", text: command }) : null,
    lines > 3 ? h("p", { class: "question-session", text: `${lines} lines; scroll to read all of them.` }) : null,
    q.changes?.length ? h("ul", { class: "paths mono", "aria-label": "Files" }, ...q.changes.map((c) => h("li", { text: visible(c) }))) : null,
    q.beyond ? h("p", { class: "question-text", text: `A yes would also allow: ${visible(q.beyond)}.` }) : null,
    risk || q.cwd || (q.reason && !ours) ? h("p", { class: "question-risk", data: { risk: q.risk } }, risk ? h("strong", { text: risk }) : null, risk ? `: ${because}. ` : null,
      q.cwd ? h("span", {}, "In ", h("span", { class: "mono", text: visible(q.cwd) }), ". ") : null, q.reason && !ours ? `It says: ${q.reason}` : null) : null,
    answer?.el,
    order.length ? h("div", { class: "question-buttons" }, ...buttons) : null,
    twice?.el,
    h("p", { class: "question-hint" }, how, " ", until), sending);
  const counts = steady(el);
  let gone = false; // Switchboard is
  return {
    el,
    update({ sending: decision, inCall, lost }) {
      gone = lost;
      setText(how, voiceWords(q, inCall));
      setText(until, givesUpWords(q, Date.now()));
      show(until, Boolean(until.textContent));
      for (const b of buttons) {
        // Not `disabled`: the keyboard would lose its place.
        setAttr(b, "aria-disabled", decision || lost ? "true" : null);
        b.classList.toggle("chosen", b.dataset.decision === decision);
      }
      answer?.sending(Boolean(decision || lost));
      twice?.sending(Boolean(decision || lost));
      setText(sending, decision ? "Sending your answer…" : lost ? "Switchboard is not answering; this can be answered once it is back." : "");
      show(sending, Boolean(decision || lost));
    },
  };
}
