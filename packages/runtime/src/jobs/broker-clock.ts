import { kvPrefix, kvStreamName, utf8Bytes } from "@trellis/protocol";
import { JetStreamPublisher } from "../jetstream/publisher.ts";
import { StreamReader } from "../jetstream/stream-reader.ts";
import { sleep } from "../lifecycle/backoff.ts";
import { systemTimers, type Timer } from "../lifecycle/timers.ts";
import type { JobsLink } from "./jobs-link.ts";

const renewMs = 60_000;
const retryMs = 2_000;

/**
 * The broker's time. Delays and deadlines are counted by it alone, so that the clocks of machines may be wrong by hours:
 * it is read off a message that the broker has just stored, and kept by the monotonic clock.
 */
export class BrokerClock {
  readonly #link: JobsLink;
  readonly #subject: string;
  readonly #publisher: JetStreamPublisher;
  readonly #reader: StreamReader;
  readonly #timeoutMs: number;
  #offset: number | undefined;
  #timer: Timer | undefined;
  #stopped = false;
  /** How far tests have set the clock forward, since when by the broker's own time; empty outside of tests. */
  readonly #jumps: { readonly at: number; readonly ahead: number }[] = [];
  readonly #onJump = new Set<() => void>();

  constructor(link: JobsLink, options: { requests: JobsRequests; bucket: string; timeoutMs: number }) {
    this.#link = link;
    this.#subject = `${kvPrefix(options.bucket)}.clock`;
    this.#publisher = new JetStreamPublisher(options.requests);
    this.#reader = new StreamReader(options.requests, kvStreamName(options.bucket));
    this.#timeoutMs = options.timeoutMs;
  }

  /** Ms since the epoch; before the first reading, as the connection's own clock counts them. */
  now(): number {
    return this.#brokerNow() + this.#ahead;
  }

  /** The instant of this clock at which the broker stored something. */
  instantOf(storedAt: number): number {
    return storedAt + (this.#jumps.findLast(({ at }) => at <= storedAt)?.ahead ?? 0);
  }

  /** What the broker's own clock shows at an instant of this one. */
  brokerInstant(instant: number): number {
    return instant - this.#ahead;
  }

  /**
   * Sets the clock forward, for tests: what is stored from now on is stored that much later. Since when that is, the broker
   * itself says: an estimate would put what was stored a moment ago on the wrong side.
   */
  async advance(ms: number): Promise<void> {
    const stamped = await this.#stamp();
    if (stamped === undefined) throw new Error("The broker's clock cannot be read.");
    this.#jumps.push({ at: stamped + 1, ahead: this.#ahead + ms });
    // What is stored next is stored behind that millisecond.
    await sleep(2);
    for (const listener of [...this.#onJump]) listener();
  }

  /** Hears of every `advance`; returns the way to stop. */
  onJump(listener: () => void): () => void {
    this.#onJump.add(listener);
    return () => void this.#onJump.delete(listener);
  }

  get #ahead(): number {
    return this.#jumps.at(-1)?.ahead ?? 0;
  }

  #brokerNow(): number {
    return this.#offset === undefined ? this.#link.clock.now() : this.#link.clock.monotonic() + this.#offset;
  }

  /** Reads the broker's time, now and then again and again; resolves after the first reading, or when it failed. */
  async start(): Promise<void> {
    const read = await this.#read().catch(() => false);
    if (this.#stopped) return;
    this.#timer = systemTimers.set(() => void this.start(), read ? renewMs : retryMs, { background: true });
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.clear();
  }

  async #read(): Promise<boolean> {
    const { clock } = this.#link;
    const before = clock.monotonic();
    const stored = await this.#stamp();
    const after = clock.monotonic();
    if (stored === undefined) return false;
    this.#offset = stored - (before + after) / 2;
    return true;
  }

  /** The broker's time, ms, off a message that it has just stored; `undefined` when that is gone already. */
  async #stamp(): Promise<number | undefined> {
    await this.#publisher.publish(this.#subject, utf8Bytes("{}"), {
      timeoutMs: this.#timeoutMs,
      repeatable: true,
    });
    // Another process may have written since: then that is what is read, and it lies between the same two instants.
    const stored = (await this.#reader.lastOf(this.#subject, { timeoutMs: this.#timeoutMs })).orThrow();
    return stored?.storedAt.getTime();
  }
}

type JobsRequests = ConstructorParameters<typeof JetStreamPublisher>[0];
