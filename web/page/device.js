// What a call asks of the device: the screen stays on, the lock screen and the keys of a headset know the call,
// and the app's icon has the number of what needs the person. A device that cannot do it does without.

let lock = null; // the screen's; a promise while it is asked for
let wanted = false;

async function keepAwake(on) {
  wanted = on;
  if (!on) {
    const held = await lock;
    lock = null;
    held?.release().catch(() => {});
    return;
  }
  if (lock || document.hidden) return;
  lock = navigator.wakeLock?.request("screen").catch(() => null) ?? null; // a low battery refuses it
  const held = await lock;
  if (!held) lock = null;
  else held.addEventListener("release", () => { lock = null; }); // a page that is hidden loses it
}

document.addEventListener("visibilitychange", () => { if (wanted) keepAwake(true); });

/** Wires the device. `acts`: hangUp(), mute(on), quiet(), as the keys of a headset and the lock screen press them. */
export function deviceView(acts) {
  const session = navigator.mediaSession;
  const on = (action, f) => {
    try {
      session?.setActionHandler(action, f);
    } catch { /* this browser has no such key */ }
  };
  let muted = false;
  on("hangup", acts.hangUp);
  on("togglemicrophone", () => acts.mute(!muted));
  for (const key of ["pause", "stop"]) on(key, acts.quiet);
  let [inCall, badge] = [false, -1];
  return (state, count) => {
    const live = state.call.phase === "live" || state.call.phase === "reconnecting";
    if (live !== inCall) {
      inCall = live;
      keepAwake(live);
      if (session) {
        session.playbackState = live ? "playing" : "none";
        session.metadata = live && window.MediaMetadata ? new MediaMetadata({ title: "In a call", artist: "Switchboard", artwork: [{ src: "page/icon-192.png", sizes: "192x192", type: "image/png" }] }) : null;
      }
    }
    muted = state.call.muted;
    session?.setMicrophoneActive?.(live && state.call.mic === "on" && !muted);
    if (count !== badge) {
      badge = count;
      (count ? navigator.setAppBadge?.(count) : navigator.clearAppBadge?.())?.catch(() => {});
    }
  };
}
