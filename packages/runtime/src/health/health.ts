import { encodeJson, type HealthCheck } from "@trellis/protocol";
import { systemTimers, type Timers } from "../lifecycle/timers.ts";
import { within } from "../lifecycle/within.ts";
import type { Logger } from "../logging/logger.ts";

/** What a check gives. */
export interface HealthReport {
  readonly status: "ok" | "degraded" | "failed";
  /** One line for people. */
  readonly summary?: string;
  readonly info?: Readonly<Record<string, unknown>>;
}

export type HealthCheckFunction = () => HealthReport | PromiseLike<HealthReport>;

/** What a service says about itself in every heartbeat. */
export interface HealthInfo {
  readonly version?: string;
  readonly info?: Readonly<Record<string, unknown>>;
}

/** `service.health` */
export interface Health {
  setInfo(info: HealthInfo): void;
  /** Adds a check; returns the way to take it out. A second check of the same name throws. */
  add(name: string, check: HealthCheckFunction): () => void;
  /** Runs all checks now. */
  check(): Promise<readonly HealthCheck[]>;
}

const checkTimeoutMs = 5_000;
/** Waiting for a check that hangs must not keep a process alive that is done. */
const patience: Timers = {
  set: (callback, delayMs) => systemTimers.set(callback, delayMs, { background: true }),
};

/** The checks of one service: each timed out and isolated, so that a bad one fails alone. */
export class HealthChecks implements Health {
  readonly #checks = new Map<string, HealthCheckFunction>();
  readonly #log: Logger;
  #info: HealthInfo | undefined;

  constructor(log: Logger) {
    this.#log = log;
  }

  get info(): HealthInfo | undefined {
    return this.#info;
  }

  setInfo(info: HealthInfo): void {
    this.#info = info;
  }

  add(name: string, check: HealthCheckFunction): () => void {
    if (this.#checks.has(name)) throw new TypeError(`A health check named "${name}" is there already.`);
    this.#checks.set(name, check);
    return () => void this.#checks.delete(name);
  }

  check(): Promise<readonly HealthCheck[]> {
    return Promise.all([...this.#checks].map(([name, check]) => this.#run(name, check)));
  }

  async #run(name: string, check: HealthCheckFunction): Promise<HealthCheck> {
    const startedAt = performance.now();
    let report: HealthReport = { status: "failed", summary: `no answer within ${checkTimeoutMs} ms` };
    const running = Promise.resolve()
      .then(check)
      .then((given) => {
        report = checked(given);
      })
      .catch((error: unknown) => {
        this.#log.warn({ check: name, err: error }, "A health check failed to answer");
        // The text of an error may hold secrets; it is in the log.
        report = { status: "failed", summary: "the check threw; see the service's log" };
      });
    await within(running, checkTimeoutMs, patience);
    return { name, ...plain(report), durationMs: Math.round(performance.now() - startedAt) };
  }
}

/** A check is the application's code: what it gives is looked at before it goes into the sample of all checks. */
function checked(given: HealthReport): HealthReport {
  if (!["ok", "degraded", "failed"].includes(given.status))
    throw new TypeError("A health check gave no status.");
  const { summary, info } = given;
  if (summary !== undefined && typeof summary !== "string")
    throw new TypeError("The summary of a health check is text.");
  if (!encodeJson(info ?? {}).ok) throw new TypeError("The info of a health check is JSON.");
  return given;
}

function plain(report: HealthReport): Pick<HealthCheck, "status" | "summary" | "info"> {
  const { status, summary, info } = report;
  return {
    status,
    ...(summary === undefined ? {} : { summary }),
    ...(info === undefined ? {} : { info: { ...info } }),
  };
}
