// Notifications: what they say, asking for them, and the no that can be given there. A yes never is: the command is not
// seen on a lock screen.

import * as api from "./api.js";
import * as held from "./login.js";
import { asSent, loadWishes } from "./wishes.js";

/** A message of Switchboard as a notification: { title, body, ... }. Whatever comes is only text. */
export function noticeOf(text) {
  let m = {};
  try {
    m = JSON.parse(text) ?? {};
  } catch { /* not ours: it says that there is something */ }
  const question = m.kind === "question" && typeof m.question === "string";
  const rings = m.rings === true; // a call is offered, in which it is asked or told
  const silent = m.silent === true;
  return {
    title: String(m.title || "Switchboard"), body: String(m.text || "Something needs you."), tag: String(m.question || m.id || "switchboard"),
    icon: "/page/icon-192.png", badge: "/page/icon-192.png", requireInteraction: (question || rings) && !silent, silent, data: { question: question ? m.question : "", at: rings ? "talk/answer" : "work" },
    actions: [rings ? { action: "answer", title: "Answer" } : { action: "open", title: "Open" }, ...(question ? [{ action: "decline", title: "Decline" }] : [])],
  };
}

/** Declines the question of a notification; tell(text) says what became of it when it did not go. */
export async function declined({ question }, tell) {
  try {
    if (!(await held.recall())) throw new Error("This browser is logged out. Open the page to answer.");
    await api.decide(question, "decline");
  } catch (error) {
    if (error.code !== "not_pending") await tell(`Not declined: ${error.message}`);
  }
}

/** Whether this browser can be told at all. */
export const possible = () => "serviceWorker" in navigator && "PushManager" in globalThis && "Notification" in globalThis;

/** What the browser's person said to notifications: "default" (not asked yet), "granted" or "denied". */
export const permission = () => Notification.permission;

/** Calls f when that changes, in the browser's own settings for one. */
export function onPermission(f) {
  navigator.permissions?.query({ name: "notifications" }).then((status) => status.addEventListener("change", f), () => {}); // then it is seen when the page is loaded anew
}

// Browsers take the address of a worker only from a policy; ours knows one address.
const policy = globalThis.window?.trustedTypes?.createPolicy?.("switchboard-worker", { createScriptURL: (url) => {
  if (url !== "/worker.js") throw new TypeError("there is one worker");
  return url;
} });

const worker = () => navigator.serviceWorker.register(policy ? policy.createScriptURL("/worker.js") : "/worker.js", { type: "module" });

/** The subscription of this browser, or null. */
export async function subscription() {
  if (!possible()) return null;
  const known = await navigator.serviceWorker.getRegistration("/").catch(() => null);
  return (await known?.pushManager.getSubscription().catch(() => null)) ?? null;
}

/** Asks the person, then the browser's push service, and tells Switchboard. Throws an Error in words. */
export async function turnOn() {
  if ((await Notification.requestPermission()) !== "granted") throw new Error("The browser's question was closed without an answer. Switch it on again to be asked.");
  await worker();
  const registration = await navigator.serviceWorker.ready;
  const { key } = await api.pushKey();
  await tell(await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key }).catch(() => {
    throw new Error("The browser's push service does not answer.");
  }));
}

const tell = (made) => {
  const { endpoint, keys } = made.toJSON();
  return api.subscribe({ endpoint, keys: { p256dh: keys.p256dh, auth: keys.auth }, ...asSent(loadWishes()) });
};

/**
 * Tells Switchboard again of what this browser has subscribed to: what it knew went with the login that told it. Reports whether
 * it knows of it now. A subscription to other keys than Switchboard has now is made anew.
 */
export async function renew() {
  const made = await subscription();
  if (!made || permission() !== "granted") return false;
  const { key } = await api.pushKey();
  if (made.options?.applicationServerKey && inBase64(made.options.applicationServerKey) !== key) {
    await made.unsubscribe();
    await turnOn();
  } else await tell(made);
  return true;
}

const inBase64 = (raw) => btoa(String.fromCharCode(...new Uint8Array(raw))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

/** Ends it, here and there. */
export async function turnOff() {
  const made = await subscription();
  if (!made) return;
  await api.unsubscribe(made.endpoint).catch(() => {}); // the push service says that it is over
  await made.unsubscribe();
}

/** Calls f(area) when a notification asks for a place of the page. */
export function onAsked(f) {
  navigator.serviceWorker?.addEventListener?.("message", ({ data }) => { if (typeof data?.go === "string") f(data.go); });
}
