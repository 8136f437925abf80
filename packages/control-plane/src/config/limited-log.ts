import type { Clock } from "@trellis/runtime/node";
import type { Log } from "./log.ts";

const windowMs = 1000;
const codeLimit = 256;

/** Warns at most once a second for each code, with how many were left out: a storm of refusals is one line. */
export class LimitedLog {
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #codes = new Map<string, { until: number; omitted: number }>();

  constructor(log: Log, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
  }

  warn(code: string, message: string): void {
    const now = this.#clock.now();
    const known = this.#codes.get(code);
    if (known !== undefined && known.until > now) {
      known.omitted++;
      return;
    }
    if (this.#codes.size >= codeLimit) this.#codes.clear();
    this.#codes.set(code, { until: now + windowMs, omitted: 0 });
    const omitted = known?.omitted ?? 0;
    this.#log.warn({ code, ...(omitted === 0 ? {} : { omitted }) }, message);
  }
}
