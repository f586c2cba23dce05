// What the page asks of Switchboard over HTTP. Failures are Problem errors with words for people.

import * as held from "./login.js";

/** A failure that can be shown: what happened, and what to do next. */
export class Problem extends Error {
  constructor(error, status) {
    super(error.message);
    this.code = error.code;
    this.next = error.next;
    this.why = error.why;
    this.status = status;
  }
}

const lost = { code: "offline", message: "Switchboard is not answering.", next: "Check that it still runs; this page goes on trying." };
const odd = { code: "internal", message: "Switchboard gave an answer that this page does not understand.", next: "Reload the page." };

const impostor = { code: "impostor", message: "Another program answers at Switchboard's address.", next: "Nothing was sent to it. Start Switchboard again; this page goes on trying." };

// The header with the login, once the other side has shown that it is Switchboard.
const carried = () => held.header(proof).catch((error) => {
  throw error instanceof held.Impostor ? new Problem(impostor, 0) : error;
});

/** Sends a request with the login, once the other side has shown that it is Switchboard. */
export async function request(path, { headers, ...rest } = {}) {
  return send(path, { ...rest, headers: { ...headers, ...await carried() } });
}

/** The token of the login, for a WebSocket, once the other side has shown that it is Switchboard. */
export const token = () => carried().then((login) => login.Authorization?.split(" ")[1] ?? "");

/** Sends a request without the login. */
async function send(path, { method = "GET", body, headers, ...rest }) {
  let answer;
  try {
    answer = await fetch(path, { method, body, headers, credentials: "omit", cache: "no-store", ...rest });
  } catch (cause) {
    if (cause?.name === "AbortError") throw cause;
    held.doubt();
    throw new Problem(lost, 0);
  }
  if (!answer.ok) throw await problemOf(answer);
  return answer;
}

const openly = (path, value) =>
  send(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(value) }).then((answer) => answer.json());

// Whoever cannot prove it, and is not silent either, is somebody else; only Switchboard's own words end a login.
async function proof(asked) {
  try {
    return (await openly("/login/proof", asked)).proof;
  } catch (error) {
    if (error instanceof Problem && (error.status === 0 || error.code === "invalid_api_key" || error.status === 503)) throw error;
    throw new Problem(impostor, 0);
  }
}

/** Reads the error of an answer. */
export async function problemOf(answer) {
  try {
    const { error } = await answer.json();
    if (error?.message) return new Problem(error, answer.status);
  } catch { /* not JSON: something between us and Switchboard answered */ }
  return new Problem(odd, answer.status);
}

const json = async (path) => {
  const answer = await request(path);
  try {
    return await answer.json();
  } catch {
    throw new Problem(odd, answer.status);
  }
};

const jsonBody = (method, value) => ({ method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(value ?? {}) });
const post = (path, value) => request(path, jsonBody("POST", value));

const part = encodeURIComponent;
const mostWork = 2000; // more than Switchboard keeps at hand

/** Logs in with { key } or { code }, and keeps the login. */
export async function login(by) {
  const { token, id, principal } = await openly("/login", by);
  await held.keep({ token, id, principal });
}
/** Ends the login of this browser. */
export async function logout() {
  const login = held.mine();
  await request(`/login/${part(login.id)}`, { method: "DELETE" });
  await held.drop(login);
}
export const logins = () => json("/login");
export const endLogin = (id) => request(`/login/${part(id)}`, { method: "DELETE" });
/** The programs elsewhere that the person let in. */
export const apps = () => json("/fleet/apps");
export const endApp = (id) => request(`/fleet/apps/${part(id)}`, { method: "DELETE" });
/** Which program asks to be let in, by the query of the address that it opened, and what it could do. */
export const askFor = (query) => post("/oauth/requests", { query }).then((answer) => answer.json());
/** Lets it in or not: { allow, answers }. Returns the address that tells it. */
export const decideFor = (id, decision) => post(`/oauth/requests/${part(id)}`, decision).then((answer) => answer.json()).then((answer) => answer.redirect);
export const servers = () => json("/fleet/servers");
/**
 * All work, newest first, without what it did, a page at a time: { items, more, incomplete }; incomplete: there may be
 * more that cannot be read now. Reading ends where the list has moved on meanwhile.
 */
export async function* handoffs() {
  let last = "";
  for (let more = 1, read = 0; more;) {
    const page = await json(`/fleet/handoffs?limit=100${last && `&before=${part(last)}`}`).catch((error) => {
      if (last && error.code === "malformed") return { items: [] };
      throw error;
    });
    last = page.items.at(-1)?.id ?? "";
    read += page.items.length;
    more = last && read < mostWork ? page.more : 0;
    yield { ...page, more };
  }
}
/** One piece of work with what it did. */
export const handoff = (id) => json(`/fleet/handoffs/${part(id)}`);
/** One step of it, with all that is kept of that. */
export const workItem = (id, item) => json(`/fleet/handoffs/${part(id)}/items/${part(item)}`);
export const questions = () => json("/fleet/questions");
export const stickies = () => json("/fleet/sticky");
export const sessions = (server, limit = 8) => json(`/fleet/sessions?server=${part(server)}&limit=${limit}`);
/** Sessions of all machines, or of one, that have some words, the newest first: a page after so many. */
export const allSessions = (server, query, after) => json(`/fleet/sessions?limit=40${after ? `&skip=${after}` : ""}${server ? `&server=${part(server)}` : ""}${query ? `&query=${part(query)}` : ""}`);
export const removeWorktree = (server, thread) => request(`/fleet/sessions/${part(server)}/${part(thread)}/worktree`, { method: "DELETE" });
export const archive = (server, thread, on) => request(`/fleet/sessions/${part(server)}/${part(thread)}/archive`, on ? { ...jsonBody("POST", {}) } : { method: "DELETE" });
export const renameSession = (server, thread, name) => post(`/fleet/sessions/${part(server)}/${part(thread)}/rename`, { name });
export const pin = (server, thread, title) => request(`/fleet/sticky/${server.split("/").map(part).join("/")}`, jsonBody("PUT", { thread_id: thread, title }));
export const machines = () => json("/fleet/machines");
export const testMachine = (server) => post(`/fleet/machines/${part(server)}/test`).then((answer) => answer.json());
/** Makes the command with which a machine joins under a name: { command }. */
export const inviteMachine = (name) => post("/fleet/machines", { name }).then((answer) => answer.json());
export const renameMachine = (server, name) => post(`/fleet/machines/${part(server)}/rename`, { name });
export const removeMachine = (server) => request(`/fleet/machines/${part(server)}`, jsonBody("DELETE", {}));
export const reloadSettings = () => post("/fleet/settings/reload", {}).then((answer) => answer.json());
export const level = () => json("/fleet/updates").then((answer) => answer.level);
export const setLevel = (level) => request("/fleet/updates", jsonBody("PUT", { level }));
const asked = (search, before) => `?limit=100${search ? `&search=${part(search)}` : ""}${before ? `&before=${part(before)}` : ""}`;
/** What was said and heard, and what work is over: a page, newest first, and what asks for the next one. */
export const said = (search, before) => json(`/fleet/conversation${asked(search, before)}`);
export const history = (search, before) => json(`/fleet/history${asked(search, before)}`);
export const past = (id) => json(`/fleet/history/${part(id)}`);
/** The elements of texts in Markdown: a list of lists. */
export const render = (texts) => post("/fleet/render", { texts }).then((answer) => answer.json());
export const addSaid = (lines) => post("/fleet/conversation", { lines });
export const dropSaid = () => request("/fleet/conversation", { method: "DELETE" });
export const pushKey = () => json("/fleet/push");
export const subscribe = (subscription) => post("/fleet/push", subscription);
export const unsubscribe = (endpoint) => request("/fleet/push", jsonBody("DELETE", { endpoint }));
export const helpPages = () => json("/help");
export const helpPage = (name) => json(`/help/${part(name)}`);
export const decisions = () => json("/fleet/decisions");
/** Makes a code with which another device logs in. */
export const deviceCode = () => post("/login/code").then((answer) => answer.json());
export const session = (server, thread, limit = 40) => json(`/fleet/sessions/${part(server)}/${part(thread)}?limit=${limit}`);
// The keys of requests that got no answer, by what they ask. Who asks the same again soon means the same: it is begun once.
const unanswered = new Map(), meansTheSame = 120_000;
async function given(path, value) {
  const asks = `${path} ${JSON.stringify(value)}`, before = unanswered.get(asks);
  const key = before?.until > Date.now() ? before.key : [...crypto.getRandomValues(new Uint8Array(12))].map((b) => b.toString(16).padStart(2, "0")).join("");
  unanswered.set(asks, { key, until: Date.now() + meansTheSame });
  const answer = await keyed(path, value, key);
  unanswered.delete(asks);
  return answer;
}
function keyed(path, value, key) {
  const { headers, ...rest } = jsonBody("POST", value);
  return request(path, { ...rest, headers: { ...headers, "Idempotency-Key": key } }).then((answer) => answer.json());
}
/** Gives work: { server, prompt, thread_id?, mode? }, mode now, next or aside. With the same key it is begun once. */
export const give = (work, key) => (key ? keyed : given)("/fleet/handoffs", work, key);
/** Gives more words to work that runs. */
export const steer = (id, prompt) => given(`/fleet/handoffs/${part(id)}/steer`, { prompt });
/** Puts work that waits before other work that waits there; "": behind all of it. */
export const move = (id, before) => post(`/fleet/handoffs/${part(id)}/move`, { before });
/** Stops work. Of what somebody else began: with how = "sure" it is stopped, with "watching" it is watched no longer. */
export const stop = (id, how) => post(`/fleet/handoffs/${part(id)}/stop${how ? `?${how}=true` : ""}`);
/** Until when finished work was put away, as a time; "": it was not. */
export const cleared = () => json("/fleet/cleared").then((answer) => answer.at ?? "");
export const setCleared = (at) => request("/fleet/cleared", jsonBody("PUT", { at: at || undefined }));
/** Answers a question: by a decision, or with a list of answers to each thing that it asks. */
export const decide = (id, decision, answers) => post(`/fleet/questions/${part(id)}`, answers ? { answers } : { decision });
export const forget = (server) => request(`/fleet/sticky/${server.split("/").map(part).join("/")}`, { method: "DELETE" });

/**
 * Offers a call, or comes back to the one with this id; returns the answer, the call's id, and whether its sound does not
 * go through Switchboard (direct). It is ended by hanging up. query: what else is asked for, "&lowers=1" where
 * the voice gets quieter here while somebody speaks into it and Switchboard cuts it, "&language=de" where one was chosen.
 */
export async function offer(sdp, signal, id, { query, restart }) {
  const answer = await request(`/v1/realtime/calls?${id ? `call_id=${part(id)}` : "rejoin=1&events=handoff&media=direct"}${query}${restart ? "&restart=1" : ""}`, { method: "POST", headers: { "Content-Type": "application/sdp" }, body: sdp, signal });
  const place = answer.headers.get("Location") ?? "";
  return { sdp: await answer.text(), id: place.slice(place.lastIndexOf("/") + 1), direct: answer.headers.get("Switchboard-Media") === "direct" };
}

/** Says what was typed in a call whose sound does not go through Switchboard, as the item with an id. */
export const sayIn = (call, id, text) => post(`/fleet/calls/${part(call)}/say`, { id, text });

/** The person's calls, wherever they are: { items: [{ id, began, held? }] }; held: its page is gone, and may come back. */
export const calls = () => json("/fleet/calls");

/** Whether a call lives there. Who cannot be asked says nothing against it. */
export const lives = (id) => calls().then(({ items }) => items.some((c) => c.id === id), () => true);

/** Hangs up. It also works while the page is being closed. */
export const hangup = (id) =>
  request(`/v1/realtime/calls/${part(id)}/hangup`, { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}", keepalive: true });
