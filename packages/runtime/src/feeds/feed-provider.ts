import type { FeedAction } from "@trellis/contract";
import {
  AuthError,
  BusyError,
  CancelledError,
  FeedError,
  type FeedOpened,
  type FeedOpening,
  toHex,
  ValidationError,
} from "@trellis/protocol";
import type { Link } from "../connect/link.ts";
import type { Deadline } from "../lifecycle/deadline.ts";
import { Sweeper } from "../lifecycle/sweeper.ts";
import { within } from "../lifecycle/within.ts";
import { callSubject } from "../rpc/callable.ts";
import type { OpenCall } from "../rpc/open-call.ts";
import { RefusedCall } from "../rpc/refused-call.ts";
import type { RpcProvider } from "../rpc/rpc-provider.ts";
import { recordFeedOpened, recordFeedRefused } from "../telemetry/feed-metrics.ts";
import { Challenges } from "./challenges.ts";
import { FeedControlReceiver } from "./feed-control-receiver.ts";
import { feedOpenAction } from "./feed-open-action.ts";
import { MissingConsumers } from "./missing-consumers.ts";
import { ProducerSession, type ProducerSessionOwner } from "./producer-session.ts";
import { RunningProducers } from "./running-producers.ts";
import type { Produce, ServedFeed } from "./served-feed.ts";
import { SessionTable } from "./session-table.ts";

export interface FeedLimits {
  /** Sessions that a service has open at once. Default 20 000. */
  readonly maxSessions?: number;
  /** Of them, those of one consumer connection. Default 10 000. */
  readonly maxSessionsPerCaller?: number;
}

const sweepMs = 1_000;
/** What clocks may differ by after correction, ms. */
const leewayMs = 5_000;
/** How long a stop waits for consumers to have got its word. */
const stopMs = 1_000;

/**
 * The providing side of feeds over one link. Sessions are opened by calls; one look a second at all of them serves
 * for every time-out, so that an idle session costs memory and two messages in ten seconds, shared with the others of
 * its consumer.
 *
 * Invariants:
 * F1. A producer runs only for a caller that proved to get what it produces, and once for each session.
 * F2. A session whose consumer left, is gone, was revoked or may not any more, ends; nothing else of the connection
 *     is touched.
 * F3. What a session holds is bounded by its window and, for a producer that does not wait, 4 MiB.
 */
export class FeedProvider implements ProducerSessionOwner {
  readonly link: Link;
  readonly #rpc: RpcProvider;
  readonly #limits: Required<FeedLimits>;
  readonly #sessions = new SessionTable();
  readonly #producers: RunningProducers;
  readonly #challenges: Challenges;
  readonly #missing = new MissingConsumers();
  readonly #sweeper: Sweeper;
  #stopping = false;

  constructor(link: Link, rpc: RpcProvider, limits: FeedLimits = {}) {
    this.link = link;
    this.#rpc = rpc;
    this.#limits = { maxSessions: 20_000, maxSessionsPerCaller: 10_000, ...limits };
    this.#producers = new RunningProducers(link.log);
    this.#challenges = new Challenges(link);
    this.#sweeper = new Sweeper(sweepMs, (late) => this.#sweep(late));
    rpc.control.add(new FeedControlReceiver(link, this.#sessions, this.#missing));
    link.listen({
      onUp: () => this.#askAll(),
      onConnectionEnd: ({ connection }) => this.#onConsumerLost(connection),
      onRevocation: () => this.#refuseRevoked(),
      onClosed: (reason) => this.#onClosed(reason),
    });
  }

  /** Open sessions. */
  get size(): number {
    return this.#sessions.size;
  }

  /** Producers that ignore their aborted signal. */
  get zombies(): number {
    return this.#producers.zombies;
  }

  serves(feed: FeedAction): boolean {
    return this.#rpc.serves(feedOpenAction(feed));
  }

  register(feed: FeedAction, produce: Produce): void {
    const opening = feedOpenAction(feed);
    const subject = callSubject(opening, this.link.session.assignment.deployment);
    const served: ServedFeed = { feed, opening, subject, produce };
    this.#rpc.register(opening, (call, given) => this.#open(served, call, given as FeedOpening));
  }

  /**
   * Takes no more sessions and ends the open ones as `stopped`. Waits a moment until their consumers know, and for the
   * producers to return, within half of what is left.
   */
  async stop(deadline: Deadline): Promise<void> {
    this.#stopping = true;
    const stopped = new CancelledError({ reason: "stopped", message: "The service is stopping" });
    for (const session of this.#sessions.all()) {
      if (session.started) session.close("stopped", stopped);
      else session.drop(stopped);
    }
    const patience = deadline.remaining() / 2;
    await Promise.all([
      this.link.broker.up ? within(this.#sessions.emptied(), Math.min(stopMs, patience)) : undefined,
      within(this.#producers.idle(), patience),
    ]);
    this.#dropAll(this.#sessions.all(), "stopped");
    this.#sweeper.stop();
  }

  // --- sessions ---

  #open(served: ServedFeed, call: OpenCall, { input, frames: subject }: FeedOpening): FeedOpened {
    const refused = this.#refusal(call, subject);
    if (refused !== undefined) {
      recordFeedRefused();
      throw new RefusedCall(refused);
    }
    const id = this.link.platform.port.random(16);
    const idText = toHex(id);
    const nonce = this.#challenges.nonce();
    this.#sessions.add(new ProducerSession({ owner: this, served, call, input, subject, id, idText, nonce }));
    this.#sweeper.start();
    recordFeedOpened(served.feed.name);
    return { connection: this.link.session.connection, session: idText, challenge: nonce };
  }

  #refusal({ session }: OpenCall, frames: string): BusyError | ValidationError | undefined {
    const { inbox, connection } = session.authorization;
    const prefix = `${inbox}.r.`;
    // Items go nowhere but to the caller's own inbox.
    if (!frames.startsWith(prefix) || !/^[A-Za-z0-9]{1,128}$/.test(frames.slice(prefix.length))) {
      const message = "is not a reply subject of the caller";
      return new ValidationError({ errors: [{ path: "/frames", message }] });
    }
    const { maxSessions, maxSessionsPerCaller } = this.#limits;
    const full =
      this.#stopping ||
      this.#sessions.size + this.#producers.leaving >= maxSessions ||
      this.#sessions.countOf(connection) >= maxSessionsPerCaller;
    return full ? new BusyError({ retryAfterMs: 100 }) : undefined;
  }

  onStarted(session: ProducerSession): void {
    this.#producers.add(session);
  }

  onReturned(session: ProducerSession): void {
    this.#producers.delete(session);
  }

  onOver(session: ProducerSession): void {
    this.#sessions.delete(session);
    this.#producers.leave(session, this.link.clock.monotonic());
  }

  #dropAll(sessions: readonly ProducerSession[], reason: string): void {
    for (const session of sessions) session.drop(new CancelledError({ reason }));
  }

  #refuseRevoked(): void {
    for (const session of this.#sessions.all()) {
      if (session.session.revoked) session.refuse(new AuthError({ reason: "revoked" }));
    }
  }

  #onClosed(reason: string): void {
    this.#dropAll(this.#sessions.all(), reason);
    this.#sweeper.stop();
  }

  // --- liveness ---

  ask(session: ProducerSession): void {
    this.#challenges.ask(session);
  }

  #askAll(): void {
    for (const session of this.#sessions.all()) this.ask(session);
  }

  #onConsumerLost(connection: string): void {
    if (this.#sessions.countOf(connection) > 0) this.#missing.add(connection, this.link.clock.monotonic());
  }

  /** `late`: ms in which this process stood still. */
  #sweep(late: number): boolean {
    const now = this.link.clock.monotonic();
    const excused = this.link.broker.up ? late : late + sweepMs;
    if (excused > 0) this.#missing.excuse(excused);
    for (const connection of this.#missing.takeGone(now)) {
      this.#dropAll(this.#sessions.ofConnection(connection), "caller_gone");
    }
    for (const session of this.#sessions.all()) {
      if (excused > 0) session.sender.excuse(excused);
      this.#look(session, now);
    }
    this.#producers.look(now);
    return this.#sessions.size > 0 || this.#producers.leaving > 0;
  }

  #look(session: ProducerSession, now: number): void {
    const { authorization } = session.session;
    if (this.link.clock.now() > authorization.expiresAt + leewayMs) {
      session.refuse(new AuthError({ reason: "expired" }));
    }
    switch (session.sender.due(now)) {
      case "ask":
        return this.ask(session);
      case "lost":
      case "unproven":
        return session.drop(new CancelledError({ reason: "caller_gone" }));
      case "stalled":
        return session.close("consumer_slow", new FeedError({ reason: "consumer_slow" }));
      case undefined:
        return;
    }
  }
}
