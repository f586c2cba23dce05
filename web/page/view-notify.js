// The switch for notifications, in the settings.

import { h, setText } from "./dom.js";
import * as notices from "./notices.js";
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
    box.checked = Boolean(await notices.subscription());
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
  look();
  return h("section", { class: "panel" }, h("h3", { class: "panel-title", text: "Notifications" }), h("label", { class: "check" }, box, "Notify me on this device"), words);
}
