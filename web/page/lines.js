// Why a line of a call does not come up.

/** The call was ended before, or while, it came up. */
export const endedThere = () => Object.assign(new Error("The call was ended by the other side."), { next: "Call again when you like." });

/** Sound and events do not come up: nothing gets through this way. */
export const blocked = () => Object.assign(new Error("The sound connection did not come up."), { next: "A firewall or a proxy may be in the way; the help tells more.", blocked: true });
