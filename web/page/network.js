// What tells a call that its way to Switchboard may be another one, and that the device slept.

const tick = 5000; // how often it is looked whether the device slept
const silent = 90_000; // so much later than that it did; a page in the background is woken once a minute

/** Whether the device slept between two looks, both in ms of the clock. */
export const slept = (before, now) => now - before >= silent;

/**
 * Watches the network and the device. changed() hears that the network may be another one; seen() that the person looks
 * at the page again; woke() that the device slept.
 */
export function watchNetwork({ changed, seen, woke }) {
  addEventListener("online", changed);
  let type = navigator.connection?.type; // only some devices tell it; how fast it is changes all the time
  navigator.connection?.addEventListener?.("change", () => {
    if (navigator.connection.type === type) return;
    type = navigator.connection.type;
    if (type !== "none") changed();
  });
  let before = Date.now();
  const look = () => {
    const now = Date.now();
    if (slept(before, now)) woke();
    before = now;
  };
  setInterval(look, tick);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return;
    look();
    seen();
  });
}
