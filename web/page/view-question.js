// Approvals: what an agent waits for, with exactly what it would do.

import { h, setAttr, setText, show } from "./dom.js";
import { steady } from "./steady.js";
import { answerForm } from "./view-answer.js";
import { decisionWords, givesUpWords, questionWords, riskWords, visible, voiceWords } from "./words.js";

const look = { accept: "primary", accept_for_session: "", decline: "", stop: "danger-quiet" };

/** Makes the card of a question; decide(id, decision, text) answers it; in words the decision is "words". */
export function questionCard(q, hue, decide) {
  const title = h("h3", { class: "question-title", id: `q-${q.id}`, text: questionWords(q) });
  const order = ["accept", "accept_for_session", "decline", "stop"].filter((d) => (q.decisions ?? []).includes(d));
  const sending = h("p", { class: "question-sending", role: "status" });
  const buttons = order.map((d) =>
    h("button", {
      class: `button ${look[d]}`, type: "button", data: { decision: d }, text: decisionWords(q, d),
      on: { click: (event) => { if (counts(event)) decide(q.id, d); } },
    }));
  const answer = q.words ? answerForm(q, (text) => { if (counts()) decide(q.id, "words", text); }) : null;
  const ours = q.kind === "copy"; // asked by Switchboard, not by an agent
  const how = h("p", { class: "question-voice", text: voiceWords(q, q.inCall) });
  const until = h("p", { class: "question-until" });
  const [risk, because] = riskWords(q) ?? [];
  const el = h("section", { class: `question ${hue}`, role: "group", "aria-labelledby": `q-${q.id}` },
    title,
    q.title ? h("p", { class: "question-session" }, ours ? "The session " : "In the session ", h("strong", { text: q.title })) : null,
    ours && q.reason ? h("p", { class: "question-text", text: q.reason }) : null,
    q.text && !q.words ? h("p", { class: "question-text", text: q.text }) : null,
    q.command ? h("pre", { class: "mono question-command", "aria-label": "Command", tabindex: "0", text: visible(q.command) }) : null,
    q.command?.split("\n").length > 8 ? h("p", { class: "question-session", text: `${q.command.split("\n").length} lines; scroll to read all of them.` }) : null,
    q.changes?.length ? h("ul", { class: "paths mono", "aria-label": "Files" }, ...q.changes.map((c) => h("li", { text: visible(c) }))) : null,
    q.cwd || (q.reason && !ours) ? h("dl", { class: "facts" }, ...fact("In", q.cwd && visible(q.cwd), "mono"), ...fact("It says", !ours && q.reason)) : null,
    q.beyond ? h("p", { class: "question-text", text: `A yes would also allow: ${visible(q.beyond)}.` }) : null,
    risk ? h("p", { class: "question-risk", data: { risk: q.risk } }, h("strong", { text: risk }), `: ${because}.`) : null,
    answer?.el,
    q.words ? how : null,
    order.length ? h("div", { class: "question-buttons" }, ...buttons) : null,
    q.words ? null : how,
    until, sending);
  const counts = steady(el);
  return {
    el,
    update({ sending: decision, inCall }) {
      setText(how, voiceWords(q, inCall));
      setText(until, givesUpWords(q, Date.now()));
      show(until, Boolean(until.textContent));
      for (const b of buttons) {
        // Not `disabled`: the keyboard would lose its place.
        setAttr(b, "aria-disabled", decision ? "true" : null);
        b.classList.toggle("chosen", b.dataset.decision === decision);
      }
      answer?.sending(Boolean(decision));
      setText(sending, decision ? "Sending your answer…" : "");
      show(sending, Boolean(decision));
    },
  };
}

const fact = (name, value, cls = "") => (value ? [h("dt", { text: name }), h("dd", { class: cls, text: value })] : []);
