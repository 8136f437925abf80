import { renewSlot } from "@trellis/protocol/jobs";
import { systemTimers, type Timer } from "../lifecycle/timers.ts";
import type { JobAttempt } from "./job-attempt.ts";
import type { QueueEnvironment } from "./queue-environment.ts";

/**
 * Signs of life for the keys' slots that attempts of this process hold. An attempt that finds its slot taken, or that
 * could not renew it for its whole time-to-live, is told that it has lost it.
 */
export class SlotKeeper {
  readonly #queue: QueueEnvironment;
  readonly #intervalMs: number;
  readonly #ttlMs: number;
  readonly #held = new Set<JobAttempt>();
  #timer: Timer | undefined;

  constructor(queue: QueueEnvironment) {
    this.#queue = queue;
    const { keyConcurrency } = queue.policy;
    this.#intervalMs = keyConcurrency?.heartbeatIntervalMs ?? 30_000;
    this.#ttlMs = keyConcurrency?.heartbeatTtlMs ?? 120_000;
  }

  hold(attempt: JobAttempt): void {
    attempt.slotAliveAt = this.#now();
    this.#held.add(attempt);
    this.#timer ??= this.#arm();
  }

  drop(attempt: JobAttempt): void {
    this.#held.delete(attempt);
  }

  stop(): void {
    this.#held.clear();
    this.#timer?.clear();
    this.#timer = undefined;
  }

  #arm(): Timer {
    return systemTimers.set(() => this.#beat(), this.#intervalMs, { background: true });
  }

  #beat(): void {
    this.#timer = this.#held.size === 0 ? undefined : this.#arm();
    for (const attempt of this.#held) void this.#renew(attempt);
  }

  async #renew(attempt: JobAttempt): Promise<void> {
    const { key } = attempt.facts;
    if (key === undefined) return;
    const holder = { job: attempt.jobId, token: attempt.token };
    // Measured from before the write: what others see of it is never older than what we believe.
    const now = this.#now();
    try {
      const renewed = await this.#queue.keys.changeKey(key, (record) => {
        const next = renewSlot(record, holder);
        return { record: next ?? record, value: next !== undefined };
      });
      if (!this.#held.has(attempt)) return;
      if (renewed) attempt.slotAliveAt = now;
      else this.#lose(attempt);
    } catch {
      if (this.#held.has(attempt) && this.#now() - (attempt.slotAliveAt ?? 0) > this.#ttlMs)
        this.#lose(attempt);
    }
  }

  #lose(attempt: JobAttempt): void {
    this.#held.delete(attempt);
    attempt.abort("lost-lease");
  }

  #now(): number {
    return this.#queue.link.clock.monotonic();
  }
}
