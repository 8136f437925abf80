import type { Broker } from "../connect/broker.ts";

/** Bytes of answers that are kept; more would be an outage long enough for their callers to have gone. */
const maxBytes = 8 * 1024 * 1024;

/**
 * Answers that were ready while the provider's socket was down. The callers' own sockets may be fine: they wait,
 * and get them when ours is back. What has been given up in the meantime is a stray answer there, and no harm.
 */
export class UnsentReplies {
  #frames: { readonly reply: string; readonly frame: Uint8Array }[] = [];
  #bytes = 0;

  keep(reply: string, frame: Uint8Array): void {
    if (this.#bytes + frame.length > maxBytes) return;
    this.#frames.push({ reply, frame });
    this.#bytes += frame.length;
  }

  send(broker: Broker): void {
    const frames = this.#frames;
    this.clear();
    for (const { reply, frame } of frames) broker.publish(reply, frame);
  }

  clear(): void {
    this.#frames = [];
    this.#bytes = 0;
  }
}
