/** How long a consumer may be without a connection before its sessions end, ms. */
const patienceMs = 5_000;

/**
 * Consumers whose connections have ended, by the platform's word. One that was cut off comes back under the same
 * connection id within moments and goes on; one that was killed does not.
 */
export class MissingConsumers {
  /** Monotonic ms since when, by connection. */
  readonly #since = new Map<string, number>();

  add(connection: string, now: number): void {
    if (!this.#since.has(connection)) this.#since.set(connection, now);
  }

  /** It said something. */
  heard(connection: string): void {
    this.#since.delete(connection);
  }

  /** Time in which nothing could have been heard does not count. */
  excuse(ms: number): void {
    for (const [connection, since] of this.#since) this.#since.set(connection, since + ms);
  }

  /** Those that do not come back. */
  takeGone(now: number): readonly string[] {
    const gone = [...this.#since].filter(([, since]) => now - since >= patienceMs).map(([it]) => it);
    for (const connection of gone) this.#since.delete(connection);
    return gone;
  }
}
