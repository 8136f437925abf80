/** Ids are remembered this long; an older request is refused by its issued-at anyway. */
const rememberMs = 60_000;

export type IdVerdict = "fresh" | "replayed" | "full";

/**
 * Request ids that were used: each may be used once. Bounded: when it is full, new requests are refused
 * rather than old ids forgotten. The ids of an earlier process are covered by `issuedAtFloor`.
 */
export class RequestIds {
  readonly #used = new Map<string, number>();
  readonly #limit: number;

  constructor(limit = 100_000) {
    this.#limit = limit;
  }

  /** Uses up an id. */
  use(id: string, now: number): IdVerdict {
    this.#prune(now);
    if (this.#used.has(id)) return "replayed";
    if (this.#used.size >= this.#limit) return "full";
    this.#used.set(id, now + rememberMs);
    return "fresh";
  }

  /** Entries are in the order of their end, since all live equally long. */
  #prune(now: number): void {
    for (const [id, until] of this.#used) {
      if (until > now) return;
      this.#used.delete(id);
    }
  }
}
