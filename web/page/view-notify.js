// The switch for notifications, in the settings.

import { h, setText } from "./dom.js";
import * as notices from "./notices.js";
import { get, onChange } from "./store.js";
import { loadWishes, saveWishes } from "./wishes.js";
import { problemWords } from "./words.js";

const usual = "You are notified when an agent asks outside a call, and when work ends that you have not heard about. You can decline from a notification, but allow only on the page.";
const none = "This browser has none here. On an iPhone or iPad, first add the page to the home screen.";
const blocked = "This browser blocks them for this page. Allow notifications in the site's settings, beside the address, then switch them on.";

/** Makes the part of the settings that has them. */
export function notifyPart() {
  const box = h("input", { type: "checkbox" });
  const words = h("p", { class: "quiet-text", role: "status" });
  let busy = false; // the switch is not disabled meanwhile: the keyboard would lose its place
  const look = async (problem = "") => {
    box.disabled = !notices.possible();
    box.checked = get().session === "in" && await notices.renew().catch((error) => { // the switch says what Switchboard knows
      problem ||= problemWords(error);
      return false;
    });
    setText(words, !notices.possible() ? none : notices.permission() === "denied" ? blocked : problem || usual);
  };
  box.addEventListener("change", async () => {
    if (busy) {
      box.checked = !box.checked;
      return;
    }
    busy = true;
    let problem = "";
    try {
      if (box.checked && notices.permission() === "default") setText(words, "Your browser asks whether this page may notify you.");
      await (box.checked ? notices.turnOn() : notices.turnOff());
    } catch (error) {
      problem = problemWords(error);
    }
    busy = false;
    await look(problem);
  });
  notices.onPermission(() => { if (!busy) look(); });
  let session = "";
  onChange((state) => {
    if (state.session === session) return;
    ({ session } = state);
    if (!busy) look();
  });
  return h("section", { class: "panel" }, h("h3", { class: "panel-title", text: "Notifications" }), h("label", { class: "check" }, box, "Notify me on this device"), words, wishesPart());
}

// What it is told, and its quiet hours. A change counts at once if it is notified at all.
function wishesPart() {
  const wishes = loadWishes();
  const change = (name) => ({ change: async ({ target }) => {
    wishes[name] = target.value;
    saveWishes(wishes);
    if (await notices.subscription()) notices.turnOn().catch((error) => setText(note, problemWords(error)));
  } });
  const pick = (name, label, options) => {
    const el = h("select", { class: "select", on: change(name) }, ...options.map(([value, text]) => h("option", { value, text })));
    el.value = wishes[name];
    return h("label", { class: "field" }, label, el);
  };
  const hours = Array.from({ length: 24 }, (_, i) => `${String(i).padStart(2, "0")}:00`).map((time) => [time, time]);
  const note = h("p", { class: "quiet-text", role: "status", text: "Questions and failures ring: the notification opens the page with the offer of a call. In the quiet hours nothing makes a sound." });
  return h("div", {}, pick("what", "Notify me of", [["", "Everything"], ["failures", "Questions and failures"], ["questions", "Questions"]]),
    pick("from", "Quiet from", [["", "Never"], ...hours]), pick("to", "Quiet until", hours), note);
}
