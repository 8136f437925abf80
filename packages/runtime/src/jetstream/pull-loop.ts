import type { Msg, Subscription } from "@nats-io/nats-core";
import { utf8Bytes } from "@trellis/protocol";
import type { Broker } from "../connect/broker.ts";
import { newReplyScope } from "../connect/inbox.ts";
import type { Link } from "../connect/link.ts";
import { backoffDelay } from "../lifecycle/backoff.ts";
import { systemTimers, type Timer } from "../lifecycle/timers.ts";
import { within } from "../lifecycle/within.ts";
import { PullCredit } from "./pull-credit.ts";
import { type MessageOwner, PulledMessage, readDelivery } from "./pulled-message.ts";
import { SettledSequences } from "./settled-sequences.ts";

/** What a pull loop needs of its connection; a `Link` is one. */
export type PullLink = Pick<Link, "broker" | "listen" | "log"> & {
  readonly clock: Pick<Link["clock"], "now" | "monotonic">;
  readonly platform: Pick<Link["platform"], "port">;
};

export interface PullOptions {
  readonly stream: string;
  /** Durable name. */
  readonly consumer: string;
  /** What this connection's inboxes begin with. */
  readonly inbox: string;
  /** Messages that are with this process at a time, at the most; see `PullLoop.prefetch`. */
  readonly prefetch: number;
  /** How long the server waits for a sign of life, ms; held messages get one in time. */
  readonly ackWaitMs: number;
  /** Priority group of a pinned consumer: one process at a time gets its messages. */
  readonly group?: string | undefined;
  /** Nothing is said of messages: the consumer wants no acknowledgements. */
  readonly silent?: boolean | undefined;
  onMessage(message: PulledMessage): void;
  /** It has begun to fail. */
  onFailing?(): void;
  /** The group's messages come here from now on; before, they may have gone to another process. */
  onPinned?(): void;
}

/** How a pull loop fares. `failing`: nothing can come, for the reason given; it goes on trying. */
export type PullState =
  | { readonly phase: "idle" }
  | { readonly phase: "pulling" }
  | { readonly phase: "failing"; readonly since: number; readonly reason: string };

const expiresMs = 30_000;
const heartbeatMs = 2_000;
/** Silence for so long means that nobody works on our requests. */
const silenceMs = 5_500;
const watchMs = 1_000;
const drainMs = 1_000;
const retry = { initial: 200, max: 3_000 };

/**
 * Pulls from a durable consumer, bound only, without a JetStream API call beside the pulls themselves.
 *
 * Invariants:
 * P1. Never more than `prefetch` messages are with this process, waiting or worked on.
 * P2. A message is in work once: when it comes again meanwhile the new delivery is adopted, and when it comes again
 *     after it was settled here the server is told once more.
 * P3. A consumer that is gone, silent or refused is a failing state within seconds; when it is back, so are we.
 * P4. After `stop` nothing comes any more: what comes while it stops is handed over like the rest.
 */
export class PullLoop implements MessageOwner {
  readonly broker: Broker;
  readonly #link: PullLink;
  readonly #options: PullOptions;
  readonly #subject: string;
  readonly #inbox: string;
  readonly #held = new Map<number, PulledMessage>();
  readonly #done = new SettledSequences();
  readonly #credit = new PullCredit();
  readonly #unlisten: (() => void)[] = [];
  /** What could not be said while the socket was down: no more than was held then. */
  #unsaid: [reply: string, word: Uint8Array][] = [];
  #subscription: Subscription | undefined;
  #state: PullState = { phase: "idle" };
  #next = 0;
  #pin: string | undefined;
  #heardAt = 0;
  #failures = 0;
  #watch: Timer | undefined;
  #retrying: Timer | undefined;
  #asking = false;
  #prefetch: number;

  constructor(link: PullLink, options: PullOptions) {
    this.#link = link;
    this.broker = link.broker;
    this.#options = options;
    this.#prefetch = options.prefetch;
    this.#subject = `$JS.API.CONSUMER.MSG.NEXT.${options.stream}.${options.consumer}`;
    this.#inbox = `${options.inbox}.c.${newReplyScope(link.platform.port)}`;
  }

  get state(): PullState {
    return this.#state;
  }

  /** Messages that are with this process at a time, at the most. A change counts from the next request on. */
  get prefetch(): number {
    return this.#prefetch;
  }

  set prefetch(messages: number) {
    this.#prefetch = messages;
    this.#askSoon();
  }

  /** Messages that are with this process. */
  get held(): number {
    return this.#held.size;
  }

  start(): void {
    if (this.#subscription !== undefined) return;
    this.#subscription = this.broker.subscribe(`${this.#inbox}.*`, {
      onMessage: (message) => this.#onMessage(message),
      onDenied: () => this.#fail("the broker refused the subscription of its answers"),
    });
    this.#unlisten.push(
      this.#link.listen({
        onDown: () => this.#onDown(),
        onUp: () => this.#onUp(),
        onClosed: () => this.#onClosed(),
      }),
      this.broker.onPublishDenied(this.#subject, () => this.#fail("the broker refused the pull")),
    );
    this.#state = { phase: "pulling" };
    this.#heardAt = this.#now();
    this.#look();
    this.#ask();
  }

  /**
   * Asks for nothing more, and takes back what it asked for; resolves when nothing can come any more. What is held
   * stays held, and alive, until it is settled.
   */
  async stop(): Promise<void> {
    if (this.#state.phase === "idle") return;
    this.#state = { phase: "idle" };
    this.#credit.clear();
    this.#retrying?.clear();
    // The server drops requests whose answers nobody takes; what it has sent by then is still handed over.
    if (this.#subscription !== undefined && this.broker.up) await within(this.#subscription.drain(), drainMs);
    this.#subscription?.unsubscribe();
    for (const unlisten of this.#unlisten.splice(0)) unlisten();
    if (this.#held.size === 0) this.#end();
  }

  say(reply: string, word: Uint8Array): void {
    if (this.#options.silent !== true && !this.broker.publish(reply, word)) this.#unsaid.push([reply, word]);
  }

  settled(message: PulledMessage, how: "ack" | "nak" | "term" | "dropped"): void {
    const { sequence } = message.facts;
    if (this.#held.get(sequence) === message) this.#held.delete(sequence);
    if (how === "ack" || how === "term") this.#done.add(message.facts);
    if (this.#state.phase === "idle") {
      if (this.#held.size === 0) this.#end();
    } else this.#askSoon();
  }

  /** Nothing is held any more that would have to be kept alive. */
  #end(): void {
    this.#watch?.clear();
    this.#watch = undefined;
  }

  #now(): number {
    return this.#link.clock.monotonic();
  }

  #onMessage(message: Msg): void {
    this.#heardAt = this.#now();
    if (message.subject.startsWith(this.#inbox)) return this.#onStatus(message);
    this.#credit.got();
    this.#onAlive();
    if (this.#options.group !== undefined) this.#onPin(message.headers?.get("Nats-Pin-Id") ?? "");
    const facts = readDelivery(message.reply ?? "");
    if (facts === undefined)
      return this.#fail("the stream's sequences are beyond 2^53, or its answers unreadable");
    this.#deliver(message, facts);
    this.#askSoon();
  }

  #deliver(message: Msg, facts: NonNullable<ReturnType<typeof readDelivery>>): void {
    const now = this.#now();
    const held = this.#held.get(facts.sequence);
    if (held?.facts.storedAt === facts.storedAt) return held.adopt(message, now);
    const pulled = new PulledMessage(message, { facts, owner: this, now });
    // Whatever the server says of earlier deliveries: it forgets them when it is killed.
    if (this.#done.has(facts)) return pulled.ack();
    this.#held.set(facts.sequence, pulled);
    this.#options.onMessage(pulled);
  }

  #onPin(pin: string): void {
    if (pin === "" || pin === this.#pin) return;
    this.#pin = pin;
    this.#options.onPinned?.();
  }

  #onStatus(message: Msg): void {
    const code = message.headers?.code ?? 0;
    if (code === 100) return this.#onAlive();
    const pull = message.subject.slice(this.#inbox.length + 1);
    if (!this.#credit.ended(pull)) return;
    const description = message.headers?.description ?? "";
    if (code === 404 || code === 408 || isOrdinaryEnd(code, description)) {
      this.#onAlive();
      return this.#ask();
    }
    if (code === 423) {
      this.#pin = undefined;
      return this.#again();
    }
    this.#fail(code === 503 ? "there is no such consumer" : description || `status ${code}`);
  }

  #onAlive(): void {
    this.#failures = 0;
    if (this.#state.phase !== "failing") return;
    this.#link.log.info({ consumer: this.#options.consumer }, "The consumer delivers again");
    this.#state = { phase: "pulling" };
  }

  /** Asks once for all that is settled in this turn. */
  #askSoon(): void {
    if (this.#asking || this.#state.phase === "idle") return;
    const prefetch = this.#prefetch;
    const missing = prefetch - this.#held.size - this.#credit.outstanding;
    // Half of it at a time: a request for each message would be a message for each message.
    if (missing < Math.max(1, prefetch >> 1)) return;
    this.#asking = true;
    queueMicrotask(() => {
      this.#asking = false;
      this.#ask();
    });
  }

  #ask(): void {
    if (this.#state.phase === "idle" || this.#retrying !== undefined || !this.broker.up) return;
    const batch = this.#prefetch - this.#held.size - this.#credit.outstanding;
    if (batch <= 0) return;
    const pull = (this.#next++).toString(36);
    const { group } = this.#options;
    const body = {
      batch,
      expires: expiresMs * 1_000_000,
      idle_heartbeat: heartbeatMs * 1_000_000,
      ...(group === undefined ? {} : { group, ...(this.#pin === undefined ? {} : { id: this.#pin }) }),
    };
    if (!this.broker.publish(this.#subject, utf8Bytes(JSON.stringify(body)), `${this.#inbox}.${pull}`))
      return;
    this.#credit.asked(pull, batch);
  }

  #fail(reason: string): void {
    if (this.#state.phase === "idle") return;
    if (this.#state.phase === "pulling") {
      this.#state = { phase: "failing", since: this.#link.clock.now(), reason };
      this.#link.log.warn({ consumer: this.#options.consumer, reason }, "The consumer does not deliver");
      this.#options.onFailing?.();
    } else if (this.#state.reason !== reason) this.#state = { ...this.#state, reason };
    this.#again();
  }

  /** Begins anew after a pause: a consumer that is gone must not be asked without end. */
  #again(): void {
    this.#credit.clear();
    if (this.#retrying !== undefined) return;
    this.#failures += 1;
    this.#retrying = systemTimers.set(
      () => {
        this.#retrying = undefined;
        this.#heardAt = this.#now();
        this.#ask();
      },
      backoffDelay(this.#failures, retry),
      { background: true },
    );
  }

  #onDown(): void {
    this.#credit.clear();
    this.#retrying?.clear();
    this.#retrying = undefined;
  }

  #onClosed(): void {
    void this.stop();
    this.#end();
  }

  #onUp(): void {
    this.#heardAt = this.#now();
    for (const [reply, word] of this.#unsaid.splice(0)) this.say(reply, word);
    this.#failures = 0;
    this.#ask();
  }

  /** Once a second: signs of life for what is held, and a look at how long the server has been silent. */
  #look(): void {
    this.#watch = systemTimers.set(
      () => {
        this.#keepAlive();
        const waiting = this.broker.up && this.#credit.outstanding > 0;
        if (waiting && this.#now() - this.#heardAt > silenceMs) this.#fail("the consumer is silent");
        this.#look();
      },
      Math.min(watchMs, this.#options.ackWaitMs / 4),
      { background: true },
    );
  }

  #keepAlive(): void {
    const now = this.#now();
    const due = now - this.#options.ackWaitMs / 3;
    for (const message of this.#held.values()) if (message.aliveAt <= due) message.working(now);
  }
}

/** Ends that say nothing bad: another request is welcome. */
function isOrdinaryEnd(code: number, description: string): boolean {
  return code === 409 && /^(batch completed|message size exceeds maxbytes)/i.test(description);
}
