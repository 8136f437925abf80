/**
 * How many events a replica takes beyond those that it works on: about as many as it handles in 50 ms. Fewer, and a
 * quick handler waits for the network; more, and they wait here while another replica is idle.
 */
export class LookAhead {
  readonly #concurrency: number;
  /** Moving average of a handler's duration, ms. */
  #average = 50;

  constructor(concurrency: number) {
    this.#concurrency = concurrency;
  }

  /** Takes note of a handler's duration. */
  record(ms: number): void {
    this.#average += (ms - this.#average) / 16;
  }

  /** Events that this replica may hold. */
  get prefetch(): number {
    const ahead = Math.ceil((worthMs / Math.max(this.#average, 0.05)) * this.#concurrency);
    return this.#concurrency + Math.min(maxAhead, ahead);
  }
}

const worthMs = 50;
const maxAhead = 512;
