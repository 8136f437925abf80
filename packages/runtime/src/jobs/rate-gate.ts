import { EMPTY_RATE, type RateRecord, readRateRecord, reserveRate } from "@trellis/protocol/jobs";
import { sleep } from "../lifecycle/backoff.ts";
import type { QueueEnvironment } from "./queue-environment.ts";

const kind = {
  empty: EMPTY_RATE,
  read: readRateRecord,
  isEmpty: (record: RateRecord) => record.windows.length === 0,
};
const graceMs = 60_000;

/** A permit that was not used within this part of the span is given up. */
const keepPart = 32;

/** The rate of a queue, shared by all its replicas: hands out permits to start jobs. */
export class RateGate {
  readonly #queue: QueueEnvironment;
  readonly #limit: number;
  readonly #perMs: number;
  readonly #onOpen: () => void;
  #permits = 0;
  #until = 0;
  #asking = false;
  #stopped = false;

  constructor(queue: QueueEnvironment, rate: { limit: number; perMs: number }, onOpen: () => void) {
    this.#queue = queue;
    this.#limit = rate.limit;
    this.#perMs = rate.perMs;
    this.#onOpen = onOpen;
  }

  /** Takes a permit; false when there is none here: `onOpen` is called when there are some again. */
  take(wanted: number): boolean {
    if (this.#permits > 0 && this.#queue.link.clock.monotonic() < this.#until) {
      this.#permits -= 1;
      return true;
    }
    if (!this.#asking) void this.#ask(wanted);
    return false;
  }

  stop(): void {
    this.#stopped = true;
  }

  async #ask(wanted: number): Promise<void> {
    this.#asking = true;
    try {
      for (;;) {
        const { granted, retryAfterMs } = await reserve(this.#queue, "r.all", {
          limit: this.#limit,
          perMs: this.#perMs,
          want: Math.max(1, wanted),
        });
        if (this.#stopped) return;
        if (granted === 0) {
          await sleep(retryAfterMs, { background: true });
          continue;
        }
        this.#permits = granted;
        this.#until = this.#queue.link.clock.monotonic() + Math.max(1, this.#perMs / keepPart);
        break;
      }
    } catch (error) {
      this.#queue.link.log.warn({ err: error, queue: this.#queue.name }, "A rate limit could not be asked");
      await sleep(500, { background: true });
    } finally {
      this.#asking = false;
    }
    if (!this.#stopped) this.#onOpen();
  }
}

/** Asks for permits of one record of a queue. */
export async function reserve(
  queue: QueueEnvironment,
  name: string,
  rate: { limit: number; perMs: number; want: number },
): Promise<{ readonly granted: number; readonly retryAfterMs: number }> {
  return queue.keys.change(name, { ...kind, ttlMs: 2 * rate.perMs + graceMs }, (record) => {
    const { record: next, ...value } = reserveRate(record, { ...rate, now: Math.round(queue.clock.now()) });
    // Nothing was given: nothing has to be written.
    return { record: value.granted === 0 ? record : next, value };
  });
}
