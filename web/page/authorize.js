// The page on which a person lets a program elsewhere use their machines, or does not.

import * as api from "./api.js";
import { byId, h, setText, show } from "./dom.js";
import * as held from "./login.js";
import { loginView } from "./view-login.js";
import { names, problemWords } from "./words.js";

// A press that was meant for what stood here a moment ago allows nothing: the page has to be in sight and in use for so
// long before.
const settling = 1000; // ms

const box = byId("consent");

/** Shows something in the place of what was there; the first part has the keyboard. */
function put(title, ...parts) {
  const head = h("h1", { tabindex: "-1", text: title });
  box.replaceChildren(head, ...parts.filter(Boolean));
  show(byId("opening"), false);
  show(byId("login"), false);
  show(byId("app"), true);
  head.focus();
}

const problem = (error) => put("This program cannot be let in", h("p", { text: problemWords(error) }));

async function ask() {
  let asked;
  try {
    asked = await api.askFor(location.search);
  } catch (error) {
    if (error.status === 401) {
      await held.drop();
      return login();
    }
    return problem(error);
  }
  const { program } = asked;
  if (program.problem) {
    put(`“${program.name}” cannot be let in`, h("p", { text: program.problem }), from(program),
      h("button", { class: "button", type: "button", text: `Back to ${program.redirect}`, on: { click: () => location.replace(program.back) } }));
    return;
  }
  decide(asked);
}

// Who asks: what a program calls itself anybody could; its address is its own.
const from = ({ host, redirect, local }) => h("p", {}, "It is the program of ", h("strong", { text: host }), ".", ...(redirect === host ? [] : [" Your answer goes to ", h("strong", { text: redirect }),
  local ? ", a program on this computer. Any program here could say that it is this one: allow it only if you began this yourself." : "."]));

function deeds({ tools, servers }) {
  const has = (...all) => all.some((t) => tools.includes(t));
  const where = servers ? names(servers) : "all your machines";
  return [
    has("codex", "run_on_server", "queue_next") && `give work to the agents on ${where}`,
    has("list_sessions", "read_session") && "read your sessions there",
    has("list_servers", "status") && "see your machines, and what runs",
    has("stop_work") && "stop work",
  ].filter(Boolean);
}

function decide(asked) {
  const { program, principal, tools } = asked;
  const answers = h("input", { type: "checkbox" });
  const error = h("p", { class: "field-error", role: "alert" });
  const allow = h("button", { class: "button primary", type: "button", text: "Allow", disabled: true, on: { click: () => send(true) } });
  const deny = h("button", { class: "button", type: "button", text: "Don’t allow", on: { click: () => send(false) } });
  put(`Let “${program.name}” use your machines?`, from(program),
    h("div", {}, h("p", { text: `In your name, ${principal}, it may:` }), h("ul", { class: "deeds" }, ...deeds(asked).map((text) => h("li", { text })))),
    tools.includes("answer_agent") && h("label", { class: "check" }, answers, "Its yes to what agents ask counts, too. What is risky takes your tap on the page in any case."),
    h("p", { class: "quiet-text", text: "You can disconnect it in the settings, at any time." }), error,
    h("div", { class: "consent-acts" }, allow, deny));
  let timer = 0;
  const settle = () => {
    clearTimeout(timer);
    allow.disabled = true;
    if (document.visibilityState === "visible" && document.hasFocus()) timer = setTimeout(() => { allow.disabled = false; }, settling);
  };
  for (const type of ["focus", "blur"]) addEventListener(type, settle);
  document.addEventListener("visibilitychange", settle);
  settle();

  async function send(yes) {
    allow.disabled = deny.disabled = true;
    clearTimeout(timer);
    try {
      location.replace(await api.decideFor(program.id, { allow: yes, answers: yes && answers.checked }));
    } catch (wrong) {
      setText(error, problemWords(wrong));
      deny.disabled = false;
      settle();
    }
  }
}

const login = loginView(ask);

if (!held.possible()) problem({ message: "This page was opened without encryption.", next: "Open it at the https address of Switchboard." });
else if (await held.recall()) ask();
else login();
