// The programs elsewhere that a person let in, in the settings.

import * as api from "./api.js";
import { h, show } from "./dom.js";
import { toastProblem } from "./store.js";
import { ago } from "./words.js";

/** Makes the part of the settings that has them: { el, update(items) }. Without any it is not there. */
export function appsPart() {
  const title = h("h3", { class: "panel-title", tabindex: "-1", text: "Programs that you let in" });
  const list = h("ul", { id: "apps-list", class: "rows plain" });
  const el = h("section", { class: "panel", hidden: true }, title, list, h("p", { class: "quiet-text", text: "Work that a program gave goes on when it is disconnected." }));
  async function end(app) {
    try {
      await api.endApp(app.id);
      update((await api.apps()).items);
      title.focus();
    } catch (error) {
      toastProblem(error);
    }
  }
  const row = (app) => h("li", { class: "login-row" },
    h("span", {}, h("strong", { text: app.name }), h("br", {}),
      h("span", { class: "quiet-text", text: [app.host, `active ${ago(Date.parse(app.used), Date.now())}`, app.answers && "its yes counts"].filter(Boolean).join(" · ") })),
    h("button", { class: "button small danger-quiet", type: "button", text: "Disconnect", "aria-label": `Disconnect ${app.name} at ${app.host}`, on: { click: () => end(app) } }));
  function update(items) {
    list.replaceChildren(...items.map(row));
    show(el, items.length > 0);
  }
  return { el, update };
}
