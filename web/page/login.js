// The login of this browser at this address: a token, kept in the origin's IndexedDB. It goes out only to
// who has shown to know it: a port outlives a process, and somebody else may listen there now.

const encoder = new TextEncoder();
let current = null; // { token, id, principal }
let proven = null; // the promise of a proof that holds until the connection is lost

/** Runs one transaction on the store of logins. */
function stored(mode, work) {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open("switchboard", 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore("login");
    opening.onerror = () => reject(opening.error);
    opening.onsuccess = () => {
      const db = opening.result;
      const done = db.transaction("login", mode);
      const asked = work(done.objectStore("login"));
      done.oncomplete = () => {
        db.close();
        resolve(asked.result);
      };
      done.onerror = done.onabort = () => {
        db.close();
        reject(done.error);
      };
    };
  });
}

/** Tells whether this address may keep a login: over plain HTTP from elsewhere, anybody on the way could take it. */
export const possible = () => isSecureContext;

/** Reads the login that this browser keeps; null if there is none. */
export async function recall() {
  current = (await stored("readonly", (s) => s.get("token")).catch(() => null)) ?? null;
  proven = null;
  return current;
}

/** Keeps a login. It was given just now, so who gave it knows it. */
export async function keep(login) {
  current = login;
  proven = Promise.resolve();
  await stored("readwrite", (s) => s.put(login, "token")).catch(() => {}); // a private window: it holds as long as the page
}

/** Forgets the login, unless another one is kept by now. */
export async function drop(login = current) {
  const kept = await stored("readonly", (s) => s.get("token")).catch(() => null);
  if (kept?.token === login?.token) await stored("readwrite", (s) => s.delete("token")).catch(() => {});
  if (current?.token === login?.token) current = proven = null;
}

/** The login in use, or null. */
export const mine = () => current;

/** What was proven counts no more: who listens there now may be somebody else. */
export function doubt() {
  proven = null;
}

/**
 * Returns the header that carries the login, once the other side has proven that it knows the token. ask(body)
 * sends the nonce and returns the proof; it fails as requests fail.
 */
export async function header(ask) {
  if (!current) return {};
  const login = current;
  proven ??= prove(login, ask);
  const mineProof = proven;
  try {
    await mineProof;
  } catch (error) {
    if (proven === mineProof) proven = null;
    throw error;
  }
  return { Authorization: `Bearer ${login.token}` };
}

/** An error of a proof that is wrong. */
export class Impostor extends Error {}

async function prove(login, ask) {
  const nonce = base64(crypto.getRandomValues(new Uint8Array(24)));
  const proof = await ask({ principal: login.principal, id: login.id, nonce });
  const key = await crypto.subtle.importKey("raw", await crypto.subtle.digest("SHA-256", encoder.encode(login.token)), { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
  const said = encoder.encode(`switchboard login proof v1\n${location.host}\n${nonce}`);
  if (!(await crypto.subtle.verify("HMAC", key, bytes(proof), said))) throw new Impostor();
}

const base64 = (raw) => btoa(String.fromCharCode(...raw)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

function bytes(text) {
  try {
    return Uint8Array.from(atob(String(text).replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}
