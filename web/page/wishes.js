// What this browser is notified of, and when it makes no sound. It is kept in the browser, and sent with its subscription.

const key = "switchboard-wishes";

/** { what: "" (everything), "failures" or "questions"; from, to: the quiet hours, "22:00"; from is "" for none }. */
export function loadWishes() {
  try {
    return { what: "", from: "", to: "07:00", ...JSON.parse(localStorage.getItem(key) ?? "{}") };
  } catch { // storage is off, or has something else
    return { what: "", from: "", to: "07:00" };
  }
}

export function saveWishes(wishes) {
  try {
    localStorage.setItem(key, JSON.stringify(wishes));
  } catch { /* they hold until the page is left */ }
}

/** Wishes as Switchboard takes them; `offset` is that of this browser's clock, in minutes behind UTC. */
export function asSent({ what, from, to }, offset = new Date().getTimezoneOffset()) {
  const minutes = (time) => {
    const [h, m] = time.split(":").map(Number);
    return (((h * 60 + m + offset) % 1440) + 1440) % 1440;
  };
  const clock = /^\d\d:\d\d$/;
  return { ...(what && { for: what }), ...(clock.test(from) && clock.test(to) && from !== to && { quiet: { from: minutes(from), to: minutes(to) } }) };
}
