import { replaySubject } from "@trellis/protocol";
import type { Link } from "../connect/link.ts";
import type { BrokerRequests } from "../jetstream/broker-requests.ts";
import { PullLoop, type PullState } from "../jetstream/pull-loop.ts";
import type { PulledMessage } from "../jetstream/pulled-message.ts";
import { backoffDelay } from "../lifecycle/backoff.ts";
import type { Deadline } from "../lifecycle/deadline.ts";
import { systemTimers, type Timer } from "../lifecycle/timers.ts";
import { within } from "../lifecycle/within.ts";
import { recordEvent } from "../telemetry/event-metrics.ts";
import type { BoundConsumer } from "./consumer-binding.ts";
import { DeadLetters } from "./dead-letters.ts";
import { EventDelivery, originOf } from "./event-delivery.ts";
import type { EventVerifier, VerifierLink } from "./event-verifier.ts";
import { type EventListener, exhausted, type Outcome, type WorkOptions, workOn } from "./event-work.ts";
import { KeyOrder } from "./key-order.ts";
import { LookAhead } from "./look-ahead.ts";
import { retryDelay } from "./retry-delay.ts";
import { Takeover } from "./takeover.ts";

export type ConsumerLink = VerifierLink & Pick<Link, "broker" | "listen" | "log" | "platform" | "isClosed">;

export interface EventConsumerOptions {
  readonly link: ConsumerLink;
  readonly requests: BrokerRequests;
  readonly verifier: EventVerifier;
  /** What it is called in the contract. */
  readonly alias: string;
  readonly binding: BoundConsumer;
  readonly traced: boolean;
  readonly listeners: readonly EventListener[];
}

/** Events that a replica holds for their keys' sake, at the most. */
const orderedPrefetch = 1_024;
const letterRetry = { initial: 500, max: 30_000 };
/** What handlers get to end after their signal was aborted, ms. */
const abortGraceMs = 250;

/**
 * One declared consumer in this process: takes its events, has them handled, settles each.
 *
 * Invariants:
 * N1. An event is acknowledged only after its handler ended well, or after its dead letter is stored.
 * N2. Nothing that fails stands in the way of what is behind it; in order by keys it stands in the way of its key
 *     alone, which it holds until it succeeds or is dead.
 * N3. No handler begins while the socket is down: its end could not be told, and another replica may get the event.
 * N4. In order by keys no event of a key is given back while an earlier one of it is at work here.
 */
export class EventConsumer {
  readonly alias: string;
  readonly #options: EventConsumerOptions;
  readonly #loop: PullLoop;
  readonly #letters: DeadLetters;
  readonly #work: WorkOptions;
  readonly #order = new KeyOrder<EventDelivery>();
  readonly #ahead: LookAhead;
  readonly #running = new Set<EventDelivery>();
  /** Events that hold their key until their next attempt. */
  readonly #holding = new Map<EventDelivery, Timer>();
  readonly #burying = new Map<EventDelivery, Timer | undefined>();
  readonly #replays: string;
  #stopping = false;
  #takeover: Takeover | undefined;
  #onQuiet: (() => void) | undefined;
  readonly #unlisten: () => void;

  constructor(options: EventConsumerOptions) {
    const { link, requests, binding, alias } = options;
    this.alias = alias;
    this.#options = options;
    this.#ahead = new LookAhead(binding.concurrency);
    this.#replays = replaySubject(binding.consumer);
    this.#letters = new DeadLetters(requests, {
      prefix: binding.deadLetters,
      maxPayload: () => link.broker.maxPayload,
    });
    const listeners = new Map(
      options.listeners.map((each) => [keyOf(each.action.api, each.action.name), each]),
    );
    this.#work = {
      port: link.platform.port,
      log: link.log,
      traced: options.traced,
      attempts: binding.retry.attempts,
      listener: (api, action) => listeners.get(keyOf(api, action)),
    };
    this.#loop = new PullLoop(link, {
      stream: binding.stream,
      consumer: binding.consumer,
      inbox: link.session.authorization.inbox,
      ackWaitMs: binding.ackWaitMs,
      prefetch: this.#ordered ? orderedPrefetch : this.#ahead.prefetch,
      ...(this.#ordered ? { group: "key", onPinned: () => this.#onPinned() } : {}),
      onMessage: (message) => this.#onMessage(message),
    });
    this.#unlisten = link.listen({ onUp: () => this.#pump() });
  }

  get #ordered(): boolean {
    return this.#options.binding.ordering === "per-key";
  }

  get state(): PullState {
    return this.#loop.state;
  }

  /** Handlers that run now. */
  get running(): number {
    return this.#running.size;
  }

  start(): void {
    this.#loop.start();
  }

  /** Gives back what has not begun and waits for what has, within the deadline; then aborts it. */
  async stop(deadline: Deadline): Promise<void> {
    if (this.#stopping) return;
    this.#stopping = true;
    this.#unlisten();
    await this.#loop.stop();
    if (!this.#ordered) this.#giveBack();
    if (await this.#quiet(Math.max(0, deadline.remaining() - abortGraceMs))) return this.#giveBack();
    for (const delivery of this.#running)
      delivery.stop.abort(new DOMException("the service stops", "AbortError"));
    if (await this.#quiet(Math.min(abortGraceMs, deadline.remaining()))) return this.#giveBack();
    const { log } = this.#options.link;
    log.warn({ consumer: this.alias, running: this.#running.size }, "Event handlers were left running");
  }

  /** This replica takes the events over from another: those that the other one left come first. */
  #onPinned(): void {
    const { link, requests, binding } = this.#options;
    this.#takeover ??= new Takeover({
      loop: this.#loop,
      requests,
      binding,
      log: link.log,
      clock: link.clock,
      onDone: (messages) => {
        this.#takeover = undefined;
        for (const message of messages) this.#take(message);
      },
    });
  }

  #onMessage(message: PulledMessage): void {
    if (this.#takeover === undefined || this.#stopping) this.#take(message);
    else this.#takeover.add(message);
  }

  #take(message: PulledMessage): void {
    const origin = originOf(message, this.#replays);
    const delivery = new EventDelivery(message, origin, this.#ordered);
    this.#verify(delivery);
    this.#order.add(delivery, delivery.key);
    this.#pump();
  }

  /** Begun as it arrives, so that the events of one signature are verified together. */
  #verify(delivery: EventDelivery): void {
    const { message, storedAt } = delivery.origin;
    const verdict = this.#options.verifier.verify(message, storedAt);
    delivery.verdict = verdict;
    // Whoever works on it hears of a failed look-up; until then nobody has to.
    if (verdict instanceof Promise) verdict.catch(() => {});
  }

  #pump(): void {
    const { binding, link } = this.#options;
    const { concurrency } = binding;
    while (!this.#stopping && link.broker.up && this.#running.size < concurrency) {
      const delivery = this.#order.take();
      if (delivery === undefined) return;
      this.#running.add(delivery);
      this.#run(delivery);
    }
  }

  #run(delivery: EventDelivery): void {
    const started = this.#options.link.clock.monotonic();
    const outcome = workOn(delivery, this.#work);
    if (!(outcome instanceof Promise)) return this.#ended(delivery, outcome, started);
    void outcome.then((settled) => {
      this.#ended(delivery, settled, started);
      this.#pump();
    });
  }

  #ended(delivery: EventDelivery, outcome: Outcome, started: number): void {
    const { clock } = this.#options.link;
    this.#ahead.record(clock.monotonic() - started);
    this.#running.delete(delivery);
    this.#settle(delivery, outcome);
    if (!this.#ordered && this.#ahead.prefetch !== this.#loop.prefetch)
      this.#loop.prefetch = this.#ahead.prefetch;
    this.#tellQuiet();
  }

  #settle(delivery: EventDelivery, outcome: Outcome): void {
    const { retry } = this.#options.binding;
    switch (outcome.kind) {
      case "ok":
        recordEvent(delivery.event, "ok");
        delivery.message.ack();
        return this.#order.release(delivery.key);
      case "later":
        return this.#again(delivery, outcome.delayMs);
      case "dead":
        return this.#bury(delivery, outcome);
      case "failed": {
        const { attempt } = delivery;
        const { log } = this.#options.link;
        log.warn(
          { consumer: this.alias, event: delivery.event, attempt, err: outcome.error },
          "An event's handler failed",
        );
        if (attempt >= retry.attempts) return this.#settle(delivery, exhausted(outcome.error));
        recordEvent(delivery.event, "retry");
        return this.#again(delivery, retryDelay(retry, attempt), 1);
      }
    }
  }

  /** Without keys the server keeps it until then, for any replica; with keys we do, so that its key is held. */
  #again(delivery: EventDelivery, delayMs: number, tried = 0): void {
    if (delivery.key === undefined || this.#stopping)
      return delivery.message.nak(this.#stopping ? 0 : delayMs);
    delivery.retries += tried;
    const resume = () => {
      this.#holding.delete(delivery);
      if (tried === 0) this.#verify(delivery);
      this.#order.resume(delivery);
      this.#pump();
    };
    this.#holding.set(delivery, systemTimers.set(resume, delayMs, { background: true }));
  }

  /** Stores the dead letter, however long it takes, then settles (N1). It takes no handler's place meanwhile. */
  #bury(delivery: EventDelivery, outcome: Extract<Outcome, { kind: "dead" }>, failures = 0): void {
    const { link } = this.#options;
    const { message, attempt, event } = delivery;
    const { reason, error } = outcome;
    this.#burying.set(delivery, undefined);
    this.#letters.write(delivery, { reason, error, attempts: attempt }, link.clock.now()).then(
      () => {
        link.log.error(
          { consumer: this.alias, event, reason, error: error.message },
          "An event went to the dead letters",
        );
        recordEvent(event, "dead");
        message.term();
        this.#burying.delete(delivery);
        this.#order.release(delivery.key);
        this.#pump();
        this.#tellQuiet();
      },
      (cause: unknown) => {
        link.log.warn(
          { consumer: this.alias, err: cause },
          "A dead letter could not be stored; trying again",
        );
        if (this.#stopping) {
          this.#burying.delete(delivery);
          return this.#tellQuiet(); // not settled: it comes again
        }
        const again = () => this.#bury(delivery, outcome, failures + 1);
        const timer = systemTimers.set(again, backoffDelay(failures + 1, letterRetry), { background: true });
        this.#burying.set(delivery, timer);
      },
    );
  }

  /** Hands to other replicas what is not at work, in the order of the stream. */
  #giveBack(): void {
    for (const message of this.#takeover?.end() ?? []) this.#take(message);
    const waiting = [...this.#order.drain(), ...this.#holding.keys()];
    for (const timer of this.#holding.values()) timer.clear();
    this.#holding.clear();
    for (const [delivery, timer] of this.#burying) {
      if (timer === undefined) continue;
      timer.clear();
      this.#burying.delete(delivery);
      waiting.push(delivery);
    }
    waiting.sort((a, b) => a.message.facts.sequence - b.message.facts.sequence);
    for (const { message } of waiting) message.nak();
  }

  /** True when nothing is at work any more, before `ms` are over. */
  #quiet(ms: number): Promise<boolean> {
    if (this.#isQuiet) return Promise.resolve(true);
    return within(new Promise<void>((resolve) => (this.#onQuiet = resolve)), ms);
  }

  get #isQuiet(): boolean {
    return this.#running.size === 0 && ![...this.#burying.values()].includes(undefined);
  }

  #tellQuiet(): void {
    if (this.#onQuiet !== undefined && this.#isQuiet) this.#onQuiet();
  }
}

function keyOf(api: string, action: string): string {
  return `${api} ${action}`;
}
