// The switch for notifications, in the settings.

import { h, setText } from "./dom.js";
import * as notices from "./notices.js";
import { onEnter } from "./places.js";
import { toast } from "./store.js";

/** Makes the part of the settings that has them. */
export function notifyPart() {
  const box = h("input", { type: "checkbox" });
  const words = h("p", { class: "quiet-text" });
  const look = async () => {
    box.disabled = !notices.possible();
    box.checked = Boolean(await notices.subscription());
    setText(words, notices.possible() ? "They come when an agent asks and you are in no call, and when work ended that you have not heard of. A question can be declined there; allowing it takes the page."
      : "This browser has none here. On an iPhone or iPad, first add the page to the home screen.");
  };
  box.addEventListener("change", async () => {
    box.disabled = true;
    try {
      await (box.checked ? notices.turnOn() : notices.turnOff());
    } catch (error) {
      toast(error.message, { next: error.next });
    }
    await look();
  });
  onEnter("notify", look);
  look();
  return h("section", { class: "panel" }, h("h3", { class: "panel-title", text: "Notifications" }), h("label", { class: "check" }, box, "Notify me on this device"), words);
}
