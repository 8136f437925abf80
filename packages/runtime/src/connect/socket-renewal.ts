import { sleep } from "../lifecycle/backoff.ts";
import { Deadline } from "../lifecycle/deadline.ts";
import type { Broker } from "./broker.ts";

/** What a renewal asks of the link's surfaces. */
export interface RenewalSurfaces {
  /** Calls of ours that wait for an answer: it would come to the old socket. */
  inFlight(): number;
  /** No new work is taken from the broker; resolves when everything it has sent has arrived. */
  hold(): Promise<void>;
  /** Work is taken again, and what was held back goes out. */
  release(): void;
}

/** So long a moment is waited for in which nothing is under way anyway, ms. */
const naturalMs = 5_000;
/** After that new calls are held back for so long at the most, so that the old ones can end, ms. */
const heldMs = 10_000;
const stepMs = 10;

/**
 * Takes a new socket without losing a call: the broker reads permissions only at connect, so a policy that has
 * grown takes effect with the next one.
 */
export class SocketRenewal {
  readonly #broker: () => Broker;
  readonly #surfaces: RenewalSurfaces;
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;
  #holding = false;

  constructor(broker: () => Broker, surfaces: RenewalSurfaces) {
    this.#broker = broker;
    this.#surfaces = surfaces;
  }

  /** True while calls are to wait for the new socket. */
  get holding(): boolean {
    return this.#holding;
  }

  /** Renews the socket at a quiet moment; one renewal at a time. Never rejects. */
  request(): Promise<void> {
    this.#running ??= this.#renew()
      .catch(() => undefined)
      .finally(() => {
        this.#running = undefined;
      });
    return this.#running;
  }

  stop(): void {
    this.#stopping.abort();
  }

  async #renew(): Promise<void> {
    await this.#quiet(naturalMs);
    this.#holding = true;
    try {
      await this.#quiet(heldMs);
      // Providers last: until then others' calls, which ours may be waiting for, are served.
      await this.#surfaces.hold();
      const broker = this.#broker();
      if (!this.#stopping.signal.aborted && broker.up) await broker.reconnect();
    } finally {
      this.#holding = false;
      if (!this.#stopping.signal.aborted) this.#surfaces.release();
    }
  }

  async #quiet(limitMs: number): Promise<void> {
    const limit = Deadline.after(limitMs);
    const { signal } = this.#stopping;
    while (this.#surfaces.inFlight() > 0 && !limit.expired) await sleep(stepMs, { signal, background: true });
  }
}
