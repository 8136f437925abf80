import { systemTimers, type Timer, type Timers } from "../lifecycle/timers.ts";
import type { Logger } from "../logging/logger.ts";

/** A store that can be rid of what killed puts left in it. */
export interface Sweepable {
  readonly alias: string;
  /** Gives how many puts it removed the chunks of. */
  sweep(): Promise<number>;
}

export interface SweepScheduleInput {
  /** Those that are bound now. */
  stores(): readonly Sweepable[];
  readonly log: Logger;
  readonly timers?: Timers;
  /** Spreads the replicas of a service, in [0, 1). */
  random?(): number;
}

/** A while after the start, when there is more important work, ms. */
const firstMs = 60_000;
const intervalMs = 4 * 3_600_000;

/**
 * Sweeps the stores of a service, some time after its start and then every few hours, each replica at times of its own.
 * Its timer never keeps the process alive; what fails is tried again at the next turn.
 */
export class SweepSchedule {
  readonly #input: Required<SweepScheduleInput>;
  #timer: Timer | undefined;
  #stopped = false;

  constructor(input: SweepScheduleInput) {
    this.#input = { timers: systemTimers, random: Math.random, ...input };
  }

  start(): void {
    this.#next(firstMs);
  }

  /** A sweep under way ends by itself, with the connection at the latest. */
  stop(): void {
    this.#stopped = true;
    this.#timer?.clear();
  }

  /** Half as soon, or half as late again. */
  #next(aboutMs: number): void {
    const { timers, random } = this.#input;
    const delayMs = aboutMs * (0.5 + random());
    this.#timer = timers.set(() => void this.#run(), delayMs, { background: true });
  }

  async #run(): Promise<void> {
    const { log } = this.#input;
    for (const { alias, sweep } of this.#input.stores()) {
      if (this.#stopped) return;
      try {
        const removed = await sweep();
        if (removed > 0) log.info({ store: alias, removed }, "Removed what killed puts had left in a store");
      } catch (error) {
        if (!this.#stopped)
          log.warn({ store: alias, err: error }, "Could not sweep a store; it is tried again");
      }
    }
    if (!this.#stopped) this.#next(intervalMs);
  }
}
