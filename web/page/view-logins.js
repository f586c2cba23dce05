// The logins of this principal: where they are, and a button to end each.

import * as api from "./api.js";
import { byId, h } from "./dom.js";
import { toastProblem } from "./store.js";
import { ago } from "./words.js";

/** Wires the list; it is read whenever it opens. onOut() follows when this login is ended. */
export function loginsView(onOut) {
  const box = byId("logins");
  const list = byId("logins-list");
  async function fill() {
    try {
      const { items } = await api.logins();
      list.replaceChildren(...items.map(row));
    } catch (error) {
      toastProblem(error);
    }
  }
  async function end(login) {
    try {
      if (login.this) {
        await api.logout();
        box.hidePopover();
        onOut();
        return;
      }
      await api.endLogin(login.id);
      await fill();
    } catch (error) {
      toastProblem(error);
    }
  }
  function row(login) {
    const name = browser(login.device);
    return h("li", { class: "login-row" },
      h("span", {}, h("strong", { text: login.this ? `${name}, this one` : name }), h("br", {}),
        h("span", { class: "quiet-text", text: `${login.host} · used ${ago(Date.parse(login.used), Date.now())}` })),
      h("button", { class: "button small danger-quiet", type: "button", text: "Log out", "aria-label": login.this ? "Log out here" : `Log out ${name} at ${login.host}`, on: { click: () => end(login) } }));
  }
  box.addEventListener("toggle", (e) => e.newState === "open" && fill());
}

// What a browser says of itself, in two words.
function browser(agent = "") {
  const kind = [["Edg/", "Edge"], ["Firefox/", "Firefox"], ["Chrom", "Chrome"], ["Safari/", "Safari"]].find(([mark]) => agent.includes(mark))?.[1] ?? "A browser";
  const on = [["Android", "Android"], ["iPhone", "iPhone"], ["iPad", "iPad"], ["Mac OS", "Mac"], ["Windows", "Windows"], ["Linux", "Linux"]].find(([mark]) => agent.includes(mark))?.[1];
  return on ? `${kind} on ${on}` : kind;
}
