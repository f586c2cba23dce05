// Machines that join: the command to run there and the wait for it, another name, and forgetting one.

import * as api from "./api.js";
import { confirmed, whileOpen } from "./confirm.js";
import { byId, setText, show } from "./dom.js";
import { toast, toastProblem } from "./store.js";
import { naming } from "./view-naming.js";
import { problemWords } from "./words.js";

let waiting = ""; // the machine that was invited

/** Wires the dialog that adds a machine. */
export function joinView() {
  const dialog = byId("join");
  const field = byId("join-name");
  byId("add-machine").addEventListener("click", open);
  byId("join-form").addEventListener("submit", (event) => {
    event.preventDefault();
    submit(field.value.trim());
  });
  byId("join-close").addEventListener("click", () => dialog.close());
  byId("join-copy").addEventListener("click", () => {
    navigator.clipboard?.writeText(byId("join-command").textContent).then(() => setText(byId("join-wait"), `Copied. Waiting for ${waiting}…`), () => {});
  });
  dialog.addEventListener("close", () => { waiting = ""; });
  return (state) => {
    if (!waiting || !state.servers.some((s) => s.name === waiting)) return;
    const name = waiting;
    dialog.close();
    toast(`${name} has joined.`, { tone: "info" });
  };
}

/** Asks for another name of a machine that joined. */
export const rename = (name) => naming({
  title: `Rename ${name}`, label: "What you call it", name, plain: true,
  give: (to) => api.renameMachine(name, to).then(() => toast(`${name} is ${to} now.`, { tone: "info" })),
});

/** Forgets a machine that joined, if the person agrees. */
export async function remove(name) {
  const text = "It does not come back, unless you invite it again. Work that runs there goes on, and is no longer followed.";
  if (!(await confirmed({ title: `Remove ${name}?`, text, yes: "Remove it" }))) return;
  await api.removeMachine(name).then(() => toast(`${name} is removed.`, { tone: "info" }), toastProblem);
}

function open() {
  byId("join-name").value = "";
  problem("");
  step(false);
  byId("join").showModal();
  byId("join-name").focus();
}

// Either the name is asked for, or the command is shown.
function step(invited) {
  show(byId("join-form"), !invited);
  show(byId("join-go"), !invited);
  show(byId("join-steps"), invited);
  setText(byId("join-close"), invited ? "Close" : "Cancel");
}

function problem(text) {
  setText(byId("join-problem"), text);
  show(byId("join-problem"), Boolean(text));
}

async function submit(name) {
  const open = whileOpen(byId("join"));
  problem("");
  try {
    const { command } = await api.inviteMachine(name);
    if (open.aborted) return; // the person left
    waiting = name;
    setText(byId("join-command"), command);
    setText(byId("join-wait"), `Waiting for ${name}…`);
    step(true);
    byId("join-copy").focus();
  } catch (error) {
    if (!open.aborted) problem(problemWords(error));
  }
}
