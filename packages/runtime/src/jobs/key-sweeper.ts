import {
  ageOutcomes,
  isTerminalState,
  type KeyRecord,
  type KeySlot,
  keyLimits,
  releaseSlot,
} from "@trellis/protocol/jobs";
import { systemTimers, type Timer } from "../lifecycle/timers.ts";
import type { QueueEnvironment } from "./queue-environment.ts";

export interface KeySweeperOptions {
  readonly queue: QueueEnvironment;
  /** Stores the `skipped` of a job that was replaced among the waiters. */
  skip(jobId: string, keyHash: string): Promise<void>;
}

interface Sight {
  readonly what: string;
  readonly since: number;
  /** Its job was looked at and is there. */
  readonly verified: boolean;
}

/** An entry whose job is not there after so long was left by a maker that died: ms, and in times-to-live. */
const orphan = { mostMs: 10_000, ttls: 10 };
const sweepMs = { least: 250, most: 10_000 };

/**
 * Looks after the keys of a queue, in every process that works on it: what makers and workers left when they died.
 *
 * Invariants:
 * K1. An entry without a job goes, and a slot whose job is over is given on.
 * K2. A slot is taken from its holder only after this process has seen it without a sign of life for its whole
 *     time-to-live, by its own monotonic clock; and only after the holder's job was fenced, so that what the holder
 *     still does is not recorded.
 */
export class KeySweeper {
  readonly #queue: QueueEnvironment;
  readonly #options: KeySweeperOptions;
  readonly #ttlMs: number;
  #seen = new Map<string, Sight>();
  #timer: Timer | undefined;
  #stopped = false;

  constructor(options: KeySweeperOptions) {
    this.#options = options;
    this.#queue = options.queue;
    this.#ttlMs = options.queue.policy.keyConcurrency?.heartbeatTtlMs ?? 120_000;
  }

  start(): void {
    if (keyLimits(this.#queue.policy) === undefined) return;
    const pause = Math.min(sweepMs.most, Math.max(sweepMs.least, this.#ttlMs / 4));
    // Replicas that were started together do not sweep together.
    this.#timer = systemTimers.set(() => void this.#run(), pause * (0.75 + Math.random() / 2), {
      background: true,
    });
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.clear();
  }

  async #run(): Promise<void> {
    try {
      await this.sweep();
    } catch (error) {
      const { link, name } = this.#queue;
      if (!link.isClosed)
        link.log.warn({ err: error, queue: name }, "The keys of a queue could not be swept");
    }
    if (!this.#stopped) this.start();
  }

  /** Looks at every key once. */
  async sweep(): Promise<void> {
    const before = this.#seen;
    this.#seen = new Map();
    const blocked = new Set<string>();
    for await (const { hash, record } of this.#queue.keys.keys()) {
      if (this.#stopped) return;
      for (const job of record.skips) await this.#options.skip(job, hash);
      for (const waiter of record.waiters) await this.#lookAfterEntry({ hash, job: waiter.job }, before);
      for (const slot of record.slots)
        if (slot.token === undefined) await this.#lookAfterEntry({ hash, job: slot.job, slot }, before);
        else if (await this.#lookAfterHolder({ hash, slot, record }, before)) blocked.add(hash);
      if (record.slots.length + record.waiters.length === 0) await this.#forget(hash, record);
    }
    this.#queue.blocked.clear();
    for (const hash of blocked) this.#queue.blocked.add(hash);
  }

  /** One that waits, or was granted a slot and has not come for it. */
  async #lookAfterEntry(
    { hash, job, slot }: { hash: string; job: string; slot?: KeySlot },
    before: ReadonlyMap<string, Sight>,
  ): Promise<void> {
    const id = `${hash} ${job}`;
    const sight = this.#look(id, slot === undefined ? "waits" : "granted", before);
    const orphanMs = Math.min(orphan.mostMs, orphan.ttls * this.#ttlMs);
    if (sight.verified || this.#unchangedFor(sight) < orphanMs) return;
    const last = await this.#queue.store.last(job);
    if (last === undefined || isTerminalState(last.event.state))
      return this.#queue.releaseKey({ jobId: job, key: hash }, { repair: true });
    this.#seen.set(id, { ...sight, verified: true });
    // Whoever granted it may have died before he called; a call too many does no harm.
    if (slot !== undefined) await this.#queue.store.wake(slot.lane, job);
  }

  /** True when the holder fell silent and nobody may take its place. */
  async #lookAfterHolder(
    { hash, slot, record }: { hash: string; slot: KeySlot; record: KeyRecord },
    before: ReadonlyMap<string, Sight>,
  ): Promise<boolean> {
    const sight = this.#look(`${hash} ${slot.job}`, `${slot.token} ${slot.beat}`, before);
    const silentMs = this.#unchangedFor(sight);
    if (silentMs < this.#ttlMs) return false;
    if (this.#queue.policy.keyConcurrency?.stalePolicy === "block") return true;
    // When nobody waits its own job gets the time to come again and go on.
    if (record.waiters.length > 0 || silentMs > 2 * this.#ttlMs) await this.#displace(hash, slot);
    return false;
  }

  /** Fences the holder's job, then gives its slot on, then calls for the clean-up: each may be repeated. */
  async #displace(hash: string, slot: KeySlot): Promise<void> {
    const { store, keys, policy, link, name } = this.#queue;
    const limits = keyLimits(policy);
    if (limits === undefined) return;
    link.log.warn({ queue: name, job: slot.job }, "The holder of a key fell silent; its slot is given on");
    await this.#queue.settle(slot.job, (facts) =>
      facts.state === "pending" || (facts.state === "active" && facts.token === slot.token)
        ? {
            eventType: "retry",
            state: "retry",
            retryReason: "stale-attempt",
            error: { type: "StaleAttempt", message: "Its worker fell silent, and its key was given on" },
          }
        : undefined,
    );
    const promoted = await keys.changeKey(hash, (record) => {
      const current = record.slots.find(({ job }) => job === slot.job);
      if (current?.token !== slot.token || current?.beat !== slot.beat) return { record, value: [] };
      const released = releaseSlot(record, limits, { job: slot.job, token: slot.token });
      return { record: released.record, value: released.promoted };
    });
    for (const next of promoted) await store.wake(next.lane, next.job);
    await store.wake(slot.lane, slot.job);
  }

  async #forget(hash: string, record: KeyRecord): Promise<void> {
    const now = Math.round(this.#queue.clock.now());
    if (ageOutcomes(record, now) === record) return;
    await this.#queue.keys.changeKey(hash, (current) => ({
      record: ageOutcomes(current, now),
      value: undefined,
    }));
  }

  #look(id: string, what: string, before: ReadonlyMap<string, Sight>): Sight {
    const known = before.get(id);
    const sight = known?.what === what ? known : { what, since: this.#now(), verified: false };
    this.#seen.set(id, sight);
    return sight;
  }

  #unchangedFor({ since }: Sight): number {
    return this.#now() - since;
  }

  #now(): number {
    return this.#queue.link.clock.monotonic();
  }
}
