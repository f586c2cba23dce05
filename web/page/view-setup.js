// How a machine is set up, whether it answers now, and what to do when it does not.

import * as api from "./api.js";
import { h, icon, setAttr, setText, show } from "./dom.js";
import { toast } from "./store.js";
import { remove, rename } from "./view-join.js";
import { ago, approvalWords, sandboxWords, sentence, until, voiceLimitWords } from "./words.js";

const unstarted = new Set(["not_running", "tunnel_down", "tunnel_empty", "silent", "cut"]);

/** Reports whether the card of a machine that is down shows the command that starts its agent server. A program of this machine, whose address is its command, is started by Switchboard. */
export const startHelps = (server, about) => server.health === "down" && Boolean(about?.start) && about.start !== about.address && (!server.reason || unstarted.has(server.reason));

/** Makes the part of a machine's card that tells how it is set up. */
export function setup(name) {
  const facts = h("dl", { class: "facts" });
  const command = h("code", { class: "mono start-command" });
  const copy = h("button", { class: "button small", type: "button", text: "Copy", "aria-label": `Copy the command for ${name}`, on: { click: copied } });
  const tunnel = h("p", { class: "quiet-text", text: "Behind a tunnel, use the port that it leads to." });
  const down = h("div", { class: "start", hidden: true }, h("p", { class: "quiet-text", text: "Start its agent server there:" }), h("div", { class: "start-line" }, command, copy), tunnel);
  const result = h("span", { class: "quiet-text", role: "status" });
  const test = h("button", { class: "button small", type: "button", text: "Test now", "aria-label": `Test now: ${name}`, on: { click: ask } });
  const line = h("div", { class: "test-line" }, test, result);
  const again = h("button", { class: "button small", type: "button", text: "Rename…", on: { click: () => rename(joined) } });
  const gone = h("button", { class: "button small", type: "button", text: "Remove…", on: { click: () => remove(joined) } });
  const own = h("div", { class: "test-line", hidden: true }, again, gone);
  let joined = ""; // the machine, where it joined by itself
  const more = h("details", { class: "did setup" }, h("summary", { "aria-label": `How it is set up: ${name}` }, icon("chevron"), "How it is set up"), facts, line, own);
  const el = h("div", { class: "setup-box" }, down, more);

  async function copied() {
    await navigator.clipboard?.writeText(command.textContent).then(() => toast("Copied.", { tone: "info" }), () => {});
  }
  async function ask() {
    setText(result, "Asking…");
    try {
      const { took_ms: ms } = await api.testMachine(name);
      setText(result, `It answered in ${ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`}.`);
    } catch (error) {
      setText(result, [error.message, error.why && sentence(error.why), error.next].filter(Boolean).join(" "));
    }
  }

  return {
    el,
    update(server, about) {
      const now = Date.now();
      const isDown = server.health === "down";
      show(down, startHelps(server, about));
      const place = isDown ? el : more; // what is down is tested first
      if (line.parentElement !== place) {
        if (isDown) el.insertBefore(line, more);
        else more.insertBefore(line, own);
      }
      joined = about?.machine ?? "";
      show(own, Boolean(joined));
      setAttr(again, "aria-label", `Rename ${joined}`);
      setAttr(gone, "aria-label", `Remove ${joined}`);
      setText(command, about?.start ?? "");
      show(tunnel, /^ws:\/\/(127\.|localhost|\[::1)/.test(about?.address ?? ""));
      const rows = about ? [
        ["Version", server.version], ["Reached at", about.address], ["Directory", about.directory], ["Model", about.model],
        ["Last seen", server.health === "up" ? "now" : about.seen ? ago(Date.parse(about.seen), now) : "not since Switchboard started"],
        ["Next try", isDown && about.next_try ? until(Date.parse(about.next_try), now) : ""],
        ["New sessions may", sandboxWords(about.sandbox)], ["They ask", approvalWords(about.approval)],
        ["At most", about.ceiling ? sandboxWords(about.ceiling) : "no other limit"], ["By voice you may allow", voiceLimitWords(about.voice_approvals)],
        ["Joined", about.joined ? ago(Date.parse(about.joined), now) : ""], ["System", about.system],
        ["Free space", about.disk_free ? `${Math.round(about.disk_free / 2 ** 30)} GiB` : ""],
        ["Battery", about.battery ? `${about.battery} %${about.charging ? ", on mains" : ""}` : ""],
        ["Answers", about.no_yes ? "a yes counts only on the machine itself" : ""],
      ].filter(([, value]) => value) : [];
      const key = JSON.stringify(rows);
      if (facts.dataset.key === key) return;
      facts.dataset.key = key;
      facts.replaceChildren(...rows.flatMap(([what, value]) => [h("dt", { text: what }), h("dd", { text: value })]));
    },
  };
}
