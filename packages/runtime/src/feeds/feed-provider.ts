import type { FeedAction } from "@trellis/contract";
import {
  AuthError,
  BusyError,
  CancelledError,
  encodeFeedChallenge,
  FeedError,
  type FeedOpened,
  type FeedOpening,
  MAX_FRAME_SESSIONS,
  toHex,
  ValidationError,
} from "@trellis/protocol";
import type { CallerEpoch } from "../connect/caller-session.ts";
import type { Link } from "../connect/link.ts";
import type { Deadline } from "../lifecycle/deadline.ts";
import { Sweeper } from "../lifecycle/sweeper.ts";
import { within } from "../lifecycle/within.ts";
import { callSubject } from "../rpc/callable.ts";
import type { OpenCall } from "../rpc/open-call.ts";
import { RefusedCall } from "../rpc/refused-call.ts";
import type { RpcProvider } from "../rpc/rpc-provider.ts";
import { recordFeedOpened, recordFeedRefused } from "../telemetry/feed-metrics.ts";
import { FeedControlReceiver } from "./feed-control-receiver.ts";
import { feedOpenAction } from "./feed-open-action.ts";
import { ProducerSession, type ProducerSessionOwner } from "./producer-session.ts";
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
/** A producer that goes on so long after its session was over ignores its signal. */
const zombieMs = 5_000;
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
  /** Producers that still run although their sessions are over. */
  readonly #leaving = new Set<ProducerSession>();
  readonly #sweeper: Sweeper;
  #zombies = 0;
  /** Producers that have begun and not returned. */
  #running = 0;
  #whenIdle: (() => void) | undefined;
  #stopping = false;

  constructor(link: Link, rpc: RpcProvider, limits: FeedLimits = {}) {
    this.link = link;
    this.#rpc = rpc;
    this.#limits = { maxSessions: 20_000, maxSessionsPerCaller: 10_000, ...limits };
    this.#sweeper = new Sweeper(sweepMs, (elapsed) => this.#sweep(elapsed));
    rpc.control.add(new FeedControlReceiver(link, this.#sessions));
    link.listen({
      onUp: () => this.#askAll(this.#sessions.all()),
      onConnectionEnd: ({ connection }) =>
        this.#dropAll(this.#sessions.ofConnection(connection), "caller_gone"),
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
    return this.#zombies;
  }

  serves(feed: FeedAction): boolean {
    return this.#rpc.serves(feedOpenAction(feed));
  }

  register(feed: FeedAction, produce: Produce): void {
    const action = feedOpenAction(feed);
    const subject = callSubject(action, this.link.session.assignment.deployment);
    const served: ServedFeed = { feed, subject, produce };
    this.#rpc.register(action, (call, opening) => this.#open(served, call, opening as FeedOpening));
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
      within(this.#idle(), patience),
    ]);
    this.#dropAll(this.#sessions.all(), "stopped");
    this.#sweeper.stop();
  }

  #idle(): Promise<void> {
    if (this.#running === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#whenIdle = resolve;
    });
  }

  // --- sessions ---

  #open(served: ServedFeed, call: OpenCall, { input, frames }: FeedOpening): FeedOpened {
    const refused = this.#refusal(call, frames);
    if (refused !== undefined) {
      recordFeedRefused();
      throw new RefusedCall(refused);
    }
    const { port } = this.link.platform;
    const id = port.random(16);
    const idText = toHex(id);
    const nonce = this.#nonce();
    const session = new ProducerSession({
      owner: this,
      served,
      call,
      input,
      subject: frames,
      id,
      idText,
      nonce,
    });
    this.#sessions.add(session);
    this.#sweeper.start();
    recordFeedOpened(served.feed.name);
    return { connection: this.link.session.connection, session: idText, challenge: nonce };
  }

  #refusal(call: OpenCall, frames: string): BusyError | ValidationError | undefined {
    const { authorization } = call.session;
    const prefix = `${authorization.inbox}.r.`;
    // Items go nowhere but to the caller's own inbox.
    if (!frames.startsWith(prefix) || !/^[A-Za-z0-9]{1,128}$/.test(frames.slice(prefix.length))) {
      const message = "is not a reply subject of the caller";
      return new ValidationError({ errors: [{ path: "/frames", message }] });
    }
    const { maxSessions, maxSessionsPerCaller } = this.#limits;
    const full =
      this.#stopping ||
      this.#sessions.size + this.#leaving.size >= maxSessions ||
      this.#sessions.countOf(authorization.connection) >= maxSessionsPerCaller;
    return full ? new BusyError({ retryAfterMs: 100 }) : undefined;
  }

  onOver(session: ProducerSession): void {
    this.#sessions.delete(session);
    if (session.started && !session.returned) this.#leaving.add(session);
  }

  onStarted(): void {
    this.#running += 1;
  }

  onReturned(session: ProducerSession): void {
    this.#running -= 1;
    if (this.#running === 0) this.#whenIdle?.();
    this.#leaving.delete(session);
    if (session.zombie) this.#zombies -= 1;
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
    this.#askAll([session]);
  }

  /** One challenge for all sessions of one caller that are due, by way of one of them. */
  #askAll(sessions: readonly ProducerSession[]): void {
    const byCaller = new Map<CallerEpoch, ProducerSession[]>();
    for (const session of sessions) {
      if (session.sender.phase === "proving") continue;
      const group = byCaller.get(session.epoch);
      if (group === undefined) byCaller.set(session.epoch, [session]);
      else group.push(session);
    }
    for (const [epoch, group] of byCaller) {
      for (let at = 0; at < group.length; at += MAX_FRAME_SESSIONS) {
        this.#challenge(epoch, group.slice(at, at + MAX_FRAME_SESSIONS));
      }
    }
  }

  #challenge(epoch: CallerEpoch, sessions: readonly ProducerSession[]): void {
    const { platform, broker, clock } = this.link;
    // By way of any of them: a subject that is just being given up would lose the same challenge again and again.
    const subject = sessions[Math.floor(Math.random() * sessions.length)]?.subject;
    if (subject === undefined) return;
    const nonce = this.#nonce();
    const now = clock.monotonic();
    for (const { sender } of sessions) sender.asked(nonce, now);
    const frame = encodeFeedChallenge(platform.port, {
      kind: "challenge",
      epoch: epoch.number,
      nonce,
      sessions: sessions.map(({ id }) => id),
      subject,
      key: epoch.keys.reply,
    });
    broker.publish(subject, frame);
  }

  /** 48 random bits, not 0. */
  #nonce(): number {
    const bytes = this.link.platform.port.random(6);
    return bytes.reduce((sum, byte) => sum * 256 + byte, 0) || 1;
  }

  /** `late`: ms in which this process stood still. */
  #sweep(late: number): boolean {
    const now = this.link.clock.monotonic();
    const excused = this.link.broker.up ? late : late + sweepMs;
    const asked: ProducerSession[] = [];
    for (const session of this.#sessions.all()) {
      if (excused > 0) session.sender.excuse(excused);
      this.#look(session, now, asked);
    }
    if (asked.length > 0) this.#askAll(asked);
    for (const session of this.#leaving) this.#lookForZombie(session, now);
    return this.#sessions.size > 0 || this.#leaving.size > 0;
  }

  #look(session: ProducerSession, now: number, asked: ProducerSession[]): void {
    const { authorization } = session.session;
    if (this.link.clock.now() > authorization.expiresAt + leewayMs) {
      session.refuse(new AuthError({ reason: "expired" }));
    }
    switch (session.sender.due(now)) {
      case "ask":
        asked.push(session);
        return;
      case "lost":
      case "unproven":
        return session.drop(new CancelledError({ reason: "caller_gone" }));
      case "stalled":
        return session.close("consumer_slow", new FeedError({ reason: "consumer_slow" }));
      case undefined:
        return;
    }
  }

  #lookForZombie(session: ProducerSession, now: number): void {
    if (session.zombie || now - session.overAt < zombieMs) return;
    session.zombie = true;
    this.#zombies += 1;
    this.link.log.warn(
      { action: session.served.feed.name, zombies: this.#zombies },
      "A producer goes on although its session is over: it ignores its signal",
    );
  }
}
