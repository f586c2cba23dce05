// The line of a call by WebRTC: sound in packets, events on a data channel.

import * as api from "./api.js";
import { blocked, endedThere } from "./lines.js";

const reaching = 5000; // for the first packet to get through, in ms

/** A line is made for one call, or for coming back to one. `on`: event(text), stream(stream), state(name), closed(). */
export class PeerLine {
  #peer = new RTCPeerConnection();
  #channel = this.#peer.createDataChannel("oai-events");
  #sound = this.#peer.addTransceiver("audio", { direction: "sendrecv" }); // also without a track: the microphone may come later without another offer
  #opening = Promise.withResolvers();
  #timer = 0;
  #query;

  constructor(on, query) {
    this.#query = query;
    const [peer, channel] = [this.#peer, this.#channel];
    this.#opening.promise.catch(() => {}); // it may end before anybody waits for it
    channel.onopen = this.#opening.resolve;
    channel.onmessage = ({ data }) => on.event(data);
    channel.onclose = () => {
      this.over();
      on.closed();
    };
    peer.ontrack = ({ track }) => on.stream(new MediaStream([track]));
    peer.onconnectionstatechange = () => {
      if (peer.connectionState === "closed") this.over();
      if (peer.connectionState === "failed") this.#opening.reject(blocked());
      on.state(peer.connectionState);
    };
  }

  /** Resolves when events can be sent; fails with an error whose `blocked` says that nothing gets through this way. */
  get opened() {
    return this.#opening.promise;
  }

  get open() {
    return this.#channel.readyState === "open";
  }

  /** Offers a call with the sound of a track, or of none (null), or comes back to the one with this id. */
  async call(track, id, signal) {
    await this.setTrack(track);
    await this.#peer.setLocalDescription(await this.#peer.createOffer());
    const answer = await api.offer(this.#peer.localDescription.sdp, signal, id, { query: this.#query });
    return { id: answer.id, direct: answer.direct, telephone: !/opus\/48000/i.test(answer.sdp), start: () => this.#start(answer.sdp) };
  }

  async #start(sdp) {
    await this.#peer.setRemoteDescription({ type: "answer", sdp });
    this.#timer = setTimeout(() => {
      if (!["connected", "completed"].includes(this.#peer.iceConnectionState)) this.#opening.reject(blocked());
    }, reaching);
  }

  /** Takes another way to the same call, because the network has changed. Sound and events go on. */
  async restart(id, signal) {
    const peer = this.#peer;
    await peer.setLocalDescription(await peer.createOffer({ iceRestart: true }));
    try {
      const answer = await api.offer(peer.localDescription.sdp, signal, id, { query: this.#query, restart: true });
      await peer.setRemoteDescription({ type: "answer", sdp: answer.sdp });
    } catch (error) {
      await peer.setLocalDescription({ type: "rollback" }).catch(() => {}); // it may be closed
      throw error;
    }
  }

  /** The call is over, as far as anybody knows. */
  over() {
    this.#opening.reject(endedThere());
  }

  setTrack(track) {
    return this.#sound.sender.replaceTrack(track).catch(() => {});
  }

  /** Sends an event; false: it did not go out. */
  write(event) {
    if (!this.open) return false;
    this.#channel.send(JSON.stringify(event));
    return true;
  }

  /** How the connection is, as an RTCStatsReport; null: nobody knows. */
  report() {
    return this.#peer.getStats().catch(() => null);
  }

  close() {
    clearTimeout(this.#timer);
    this.#peer.close();
  }
}
