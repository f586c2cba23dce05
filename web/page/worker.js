// The service worker: it shows notifications while no page is open, and does what is pressed there. It keeps nothing
// and answers no request: the page always comes from Switchboard.

import { declined, noticeOf } from "./page/notices.js";

addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil(clients.claim()));

addEventListener("push", (event) => {
  const { title, ...options } = noticeOf(event.data?.text() ?? "");
  event.waitUntil(registration.showNotification(title, options));
});

addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(event.action === "decline" ? declined(event.notification.data, (text) => registration.showNotification("Switchboard", { body: text, tag: "declined" })) : open(event.notification.data.at));
});

// Brings the page to the front, or opens it, at a place of it.
async function open(place) {
  const [page] = await clients.matchAll({ type: "window", includeUncontrolled: true });
  if (!page) return clients.openWindow(`/#${place}`);
  page.postMessage({ go: place });
  return page.focus();
}
