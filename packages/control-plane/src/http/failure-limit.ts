const windowMs = 60_000;
const addressLimit = 10_000;

/**
 * Counts failed credentials per address and minute. Only failures count, so that a fleet behind one address
 * is not hindered; the table is bounded, the oldest address is forgotten first.
 */
export class FailureLimit {
  readonly #failures = new Map<string, { count: number; until: number }>();
  readonly #perMinute: number;

  constructor(perMinute: number) {
    this.#perMinute = perMinute;
  }

  /** How long the address has to wait, in ms, when it failed too often; else `undefined`. */
  waitFor(address: string, now: number): number | undefined {
    const entry = this.#failures.get(address);
    if (entry === undefined || entry.until <= now || entry.count < this.#perMinute) return undefined;
    return entry.until - now;
  }

  /** Records a failure. */
  failed(address: string, now: number): void {
    const entry = this.#failures.get(address);
    if (entry !== undefined && entry.until > now) {
      entry.count++;
      return;
    }
    this.#failures.delete(address);
    const [oldest] = this.#failures.keys();
    if (this.#failures.size >= addressLimit && oldest !== undefined) this.#failures.delete(oldest);
    this.#failures.set(address, { count: 1, until: now + windowMs });
  }
}
