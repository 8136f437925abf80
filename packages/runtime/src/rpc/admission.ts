import { BusyError } from "@trellis/protocol";

export interface AdmissionLimits {
  /** Calls whose handlers run at once. Default 1024. */
  readonly maxCalls?: number;
  /** Payload bytes of those calls. Default 64 MiB. */
  readonly maxBytes?: number;
  /** Handlers that ignore their aborted signal and whose slots were given to others. Default 128. */
  readonly maxZombies?: number;
}

/**
 * Bounds what a service takes on at once. Control messages do not come through here: cancel, pings and
 * health work while the service refuses calls.
 */
export class Admission {
  readonly #limits: Required<AdmissionLimits>;
  calls = 0;
  bytes = 0;
  zombies = 0;
  /** Calls turned away so far. */
  refusals = 0;

  constructor(limits: AdmissionLimits = {}) {
    this.#limits = { maxCalls: 1024, maxBytes: 64 * 1024 * 1024, maxZombies: 128, ...limits };
  }

  /** Takes a slot, or says why there is none. */
  enter(bytes: number): BusyError | undefined {
    const { maxCalls, maxBytes, maxZombies } = this.#limits;
    if (this.calls < maxCalls && this.bytes + bytes <= maxBytes && this.zombies < maxZombies) {
      this.calls += 1;
      this.bytes += bytes;
      return undefined;
    }
    this.refusals += 1;
    return new BusyError({ retryAfterMs: 100 });
  }

  leave(bytes: number): void {
    this.calls -= 1;
    this.bytes -= bytes;
  }
}
