import { TransportError } from "@trellis/protocol";
import { backoffDelay, sleep } from "../lifecycle/backoff.ts";
import type { Logger } from "../logging/logger.ts";
import { isFinalRefusal } from "./http-bootstrap.ts";
import type { ServerClock } from "./server-clock.ts";
import type { Session } from "./session.ts";

export interface RefresherOptions {
  readonly clock: ServerClock;
  readonly log: Logger;
  session(): Session;
  /** Fetches, verifies and installs a newer session. */
  refresh(signal: AbortSignal): Promise<void>;
  /** The control plane refused for good. */
  onFinal(error: TransportError): void;
  onOutcome(outcome: "ok" | "error"): void;
  /** Share of an authorization's life after which it is refreshed, in [0, 1); a test's way to be quick. */
  random(): number;
}

const retry = { initial: 500, max: 30_000 };
/** When the authorization has ended or is about to, nothing works until this does. */
const urgentRetry = { initial: 250, max: 3_000 };
const urgentMs = 30_000;
/** Asked for out of turn, a refresh still keeps this distance from the one before. */
const minPauseMs = 250;

/**
 * Keeps the authorization fresh: at a jittered 40 to 60 % of its life, and at once when somebody has reason
 * to doubt it. A failure that may pass leaves the valid one alone and is retried; a final refusal is told.
 */
export class Refresher {
  readonly #options: RefresherOptions;
  readonly #stopping = new AbortController();
  #wake: (() => void) | undefined;
  #running: Promise<boolean> | undefined;
  #lastAt = Number.NEGATIVE_INFINITY;

  constructor(options: RefresherOptions) {
    this.#options = options;
  }

  start(): void {
    void this.#loop();
  }

  stop(): void {
    this.#stopping.abort();
  }

  /** Refreshes now unless one is under way or just ended; true when the present session is fresh. */
  now(): Promise<boolean> {
    if (this.#stopping.signal.aborted) return Promise.resolve(false);
    if (this.#options.clock.monotonic() - this.#lastAt < minPauseMs) return Promise.resolve(false);
    this.#running ??= this.#once().finally(() => {
      this.#running = undefined;
      this.#wake?.();
    });
    return this.#running;
  }

  async #loop(): Promise<void> {
    const { signal } = this.#stopping;
    for (let failures = 0; !signal.aborted; ) {
      const delay = failures === 0 ? this.#untilDue() : backoffDelay(failures, this.#retry());
      const refreshed = await this.#pause(delay, signal);
      if (signal.aborted) return;
      if (refreshed) failures = 0;
      else failures = (await this.now()) ? 0 : failures + 1;
    }
  }

  /** Waits; true when somebody else's refresh ended the wait successfully. */
  async #pause(ms: number, signal: AbortSignal): Promise<boolean> {
    const before = this.#options.session();
    const waiting = new AbortController();
    this.#wake = () => waiting.abort();
    const onStop = () => waiting.abort();
    signal.addEventListener("abort", onStop, { once: true });
    try {
      await sleep(ms, { signal: waiting.signal, background: true });
    } catch {
      // woken early
    } finally {
      this.#wake = undefined;
      signal.removeEventListener("abort", onStop);
    }
    return this.#options.session() !== before;
  }

  #retry(): typeof retry {
    const left = this.#options.session().authorization.expiresAt - this.#options.clock.now();
    return left < urgentMs ? urgentRetry : retry;
  }

  #untilDue(): number {
    const { notBefore, expiresAt } = this.#options.session().authorization;
    const share = 0.4 + 0.2 * this.#options.random();
    return Math.max(0, notBefore + share * (expiresAt - notBefore) - this.#options.clock.now());
  }

  async #once(): Promise<boolean> {
    try {
      await this.#options.refresh(this.#stopping.signal);
      this.#options.onOutcome("ok");
      return true;
    } catch (error) {
      if (this.#stopping.signal.aborted) return false;
      this.#options.onOutcome("error");
      if (error instanceof TransportError && isFinalRefusal(error)) {
        this.#stopping.abort();
        this.#options.onFinal(error);
      } else {
        this.#options.log.warn({ err: error }, "Could not refresh the authorization; the present one stays");
      }
      return false;
    } finally {
      this.#lastAt = this.#options.clock.monotonic();
    }
  }
}
