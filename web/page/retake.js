// A microphone that the device takes away: after a phone call, an iPhone leaves its track muted for good and does not end it.

const waits = [1500, 2000, 4000, 8000, 15_000, 30_000, 60_000]; // between tries to have another one, in ms

/**
 * Watches the track of a stream. told(taken) hears that the device has taken it, or given it back. While it is taken and the page
 * is seen, open() is asked for another stream, and use(stream) gets one that hears; mine() tells whether this one still counts.
 */
export function watchTaken(stream, { mine, told, open, use }) {
  const [track] = stream.getAudioTracks();
  let trying = false;
  track.addEventListener("unmute", () => { if (mine()) told(false); });
  track.addEventListener("mute", async () => {
    if (!mine()) return;
    told(true);
    if (trying) return;
    trying = true;
    for (const wait of waits) {
      await seen(wait);
      if (!mine() || !track.muted || track.readyState === "ended") break;
      const another = await open().catch(() => null); // it is in use there yet
      if (another && mine() && !another.getAudioTracks()[0].muted) {
        await use(another);
        break;
      }
      another?.getTracks().forEach((t) => t.stop());
    }
    trying = false;
  });
}

// Waits so long, and until the page is seen: while a phone call has the screen, nothing is to be had.
const seen = (ms) => new Promise((resolve) => {
  setTimeout(() => {
    if (!document.hidden) return resolve();
    document.addEventListener("visibilitychange", () => setTimeout(resolve, 500), { once: true });
  }, ms);
});
