import type { ConnectionEnd } from "@trellis/protocol";

/** The platform keeps an ended connection's notice this long; what is older is told again by nobody but a forger. */
const keepMs = 3_600_000;
const leastPrune = 4_096;

/**
 * Which ends of connections were heard already. A connection that came back has an end behind it, whose notice is
 * still in the store: whoever may read there can have the server deliver it once more, and so does our own look at
 * the store. It must not end what has begun since.
 */
export class ConnectionEnds {
  readonly #at = new Map<string, number>();
  #pruneAt = leastPrune;

  /** True for the first hearing of an end. `now`: server time, ms. */
  take({ connection, at }: ConnectionEnd, now: number): boolean {
    if (now - at > keepMs) return false;
    const known = this.#at.get(connection);
    if (known !== undefined && known >= at) return false;
    if (this.#at.size >= this.#pruneAt) this.#prune(now);
    this.#at.set(connection, at);
    return true;
  }

  #prune(now: number): void {
    for (const [connection, at] of this.#at) if (now - at > keepMs) this.#at.delete(connection);
    this.#pruneAt = Math.max(leastPrune, this.#at.size * 2);
  }
}
