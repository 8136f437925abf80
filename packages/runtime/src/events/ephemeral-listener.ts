import type { EventAction } from "@trellis/contract";
import type { TrellisError } from "@trellis/protocol";
import type { AsyncResult } from "@trellis/result";
import type { LinkListener } from "../connect/link.ts";
import { PullLoop, type PullOptions } from "../jetstream/pull-loop.ts";
import type { PulledMessage } from "../jetstream/pulled-message.ts";
import { backoffDelay, sleep } from "../lifecycle/backoff.ts";
import type { ConsumerLink } from "./event-consumer.ts";
import { EventDelivery, originOf } from "./event-delivery.ts";
import type { EventVerifier } from "./event-verifier.ts";
import { type EventListener, type WorkOptions, workOn } from "./event-work.ts";

/** What the platform is asked for; see `listenAction`. */
export interface ListenInput {
  readonly slot: number;
  readonly api: string;
  readonly event: string;
  readonly params: Readonly<Record<string, string>>;
  readonly replay: "new" | "all" | { readonly since: number };
  readonly after?: number;
}

/** Asks the platform for an ephemeral consumer. */
export type AskForListener = (
  input: ListenInput,
) => AsyncResult<{ readonly stream: string; readonly consumer: string; readonly last: number }, TrellisError>;

export interface EphemeralOptions {
  readonly link: ConsumerLink;
  readonly verifier: EventVerifier;
  readonly traced: boolean;
  readonly listener: EventListener;
  readonly ask: AskForListener;
  readonly input: Omit<ListenInput, "after">;
  onEnd(): void;
}

const prefetch = 256;
const retry = { initial: 200, max: 5_000 };
const laterMs = 1_000;

/**
 * Listens without a durable consumer: this process alone, one event after another, nothing acknowledged.
 *
 * Invariants:
 * L1. Events are handled in the order of the stream, each once; after a loss it goes on behind the last one begun.
 * L2. What fails to verify, to fit its schema or to be handled is logged and passed over.
 * L3. After `stop` no handler begins.
 */
export class EphemeralListener {
  readonly #options: EphemeralOptions;
  readonly #work: WorkOptions;
  readonly #unlisten: () => void;
  #waiting: EventDelivery[] = [];
  #running: EventDelivery | undefined;
  #loop: PullLoop | undefined;
  /** Sequence of the last event that a handler began with, or that lies behind where it began. */
  #last = 0;
  #stopped = false;
  #resuming = false;

  constructor(options: EphemeralOptions) {
    this.#options = options;
    const { link, traced, listener } = options;
    const { port } = link.platform;
    this.#work = { port, log: link.log, traced, attempts: 1, listener: () => listener };
    const onLink: LinkListener = {
      onDown: () => this.#drop(),
      onUp: () => void this.#resume(),
      onClosed: () => this.stop(),
    };
    this.#unlisten = link.listen(onLink);
  }

  get action(): EventAction {
    return this.#options.listener.action;
  }

  /** Has the consumer made, and begins. */
  start(): AsyncResult<void, TrellisError> {
    const { ask, input } = this.#options;
    return ask(input).map((made) => {
      if (input.replay === "new") this.#last = made.last;
      this.#open(made);
    });
  }

  /** Ends it: at once for what waits; a handler that runs has its signal aborted. */
  stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#unlisten();
    this.#drop();
    this.#running?.stop.abort(new DOMException("the listener was stopped", "AbortError"));
    this.#options.onEnd();
  }

  #open({ stream, consumer }: { stream: string; consumer: string }): void {
    if (this.#stopped) return;
    const { link } = this.#options;
    const loop: PullLoop = new PullLoop(link, {
      stream,
      consumer,
      inbox: link.session.authorization.inbox,
      ackWaitMs: Number.POSITIVE_INFINITY,
      prefetch,
      silent: true,
      onMessage: (message) => this.#onMessage(loop, message),
      onFailing: () => void this.#resume(),
    } satisfies PullOptions);
    this.#loop = loop;
    loop.start();
  }

  /** What waits comes again (L1). */
  #drop(): void {
    void this.#loop?.stop();
    this.#loop = undefined;
    this.#waiting = [];
  }

  /** Has the consumer made again behind the last event, however long it takes. */
  async #resume(): Promise<void> {
    if (this.#resuming || this.#stopped) return;
    this.#resuming = true;
    const { link, ask, input } = this.#options;
    this.#drop();
    for (let failures = 1; !this.#stopped; failures += 1) {
      const made = await ask({ ...input, after: this.#last });
      if (made.isOk()) {
        // A stream that was made anew begins at 1 again.
        if (made.value.last < this.#last) this.#last = 0;
        this.#resuming = false;
        return this.#open(made.value);
      }
      link.log.warn({ event: input.event, err: made.error }, "A listener could not be resumed; trying again");
      await sleep(backoffDelay(failures, retry), { background: true });
    }
    this.#resuming = false;
  }

  #onMessage(loop: PullLoop, message: PulledMessage): void {
    if (loop !== this.#loop) return;
    const delivery = new EventDelivery(message, originOf(message, ""), false);
    const verdict = this.#options.verifier.verify(delivery.origin.message, delivery.origin.storedAt);
    delivery.verdict = verdict;
    // Whoever works on it hears of a failed look-up; until then nobody has to.
    if (verdict instanceof Promise) verdict.catch(() => {});
    this.#waiting.push(delivery);
    if (this.#running === undefined) void this.#run();
  }

  async #run(): Promise<void> {
    for (let delivery = this.#next(); delivery !== undefined; delivery = this.#next()) {
      this.#running = delivery;
      this.#last = delivery.message.facts.sequence;
      await this.#handle(delivery);
      delivery.message.ack();
    }
    this.#running = undefined;
  }

  #next(): EventDelivery | undefined {
    return this.#stopped ? undefined : this.#waiting.shift();
  }

  async #handle(delivery: EventDelivery): Promise<void> {
    const { link, verifier } = this.#options;
    for (;;) {
      const outcome = await workOn(delivery, this.#work);
      if (outcome.kind === "later" && !this.#stopped) {
        await sleep(laterMs, { background: true });
        delivery.verdict = verifier.verify(delivery.origin.message, delivery.origin.storedAt);
        continue;
      }
      if (outcome.kind === "failed")
        link.log.warn({ event: delivery.event, err: outcome.error }, "An event's handler failed");
      if (outcome.kind === "dead")
        link.log.warn({ event: delivery.event, reason: outcome.reason }, "An event was passed over");
      return;
    }
  }
}
