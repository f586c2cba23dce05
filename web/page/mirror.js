// What is said in a call is seen live in the other windows of this browser, which are in none.

const windows = new BroadcastChannel("switchboard-said");

/** Shows the other windows an event of the voice model. */
export const mirror = (event) => windows.postMessage(event);

/** Calls f(event) for each event of a call in another window. */
export function onMirrored(f) {
  windows.onmessage = ({ data }) => { if (typeof data?.type === "string") f(data); };
}
