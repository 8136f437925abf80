import {
  type ConnectionEnd,
  isNonce,
  type Revocation,
  type RouteNotice,
  TransportError,
  toBase64Url,
} from "@trellis/protocol";
import { BrokerRequests } from "../jetstream/broker-requests.ts";
import { Phase } from "../lifecycle/phase.ts";
import { TimerWheel } from "../lifecycle/timer-wheel.ts";
import type { Logger } from "../logging/logger.ts";
import type { BrokerCredentials, Platform } from "../platform/platform.ts";
import type { Broker } from "./broker.ts";
import type { Callers } from "./callers.ts";
import { ConnectionEnds } from "./connection-ends.ts";
import type { ConnectionKeys } from "./connection-keys.ts";
import type { Connection, ConnectionStatus } from "./connection-status.ts";
import type { DirectGet } from "./direct-get.ts";
import type { Inbox } from "./inbox.ts";
import { userNkey } from "./nkey.ts";
import type { NoticeReader } from "./notices.ts";
import type { Refresher } from "./refresher.ts";
import type { Revocations } from "./revocations.ts";
import type { Routes } from "./routes.ts";
import type { ServerClock } from "./server-clock.ts";
import type { Session } from "./session.ts";
import { SocketRenewal } from "./socket-renewal.ts";

/** Dials that come to nothing until the control plane is asked for news. */
const attemptsBeforeAsking = 20;

/** Who wants to hear what happens to a link; each surface registers one. */
export interface LinkListener {
  /** The socket broke: answers under way may be lost. */
  onDown?(): void;
  /** The socket is back, under a new generation. */
  onUp?(): void;
  onConnectionEnd?(end: ConnectionEnd): void;
  onRevocation?(revocation: Revocation): void;
  onRoute?(route: RouteNotice): void;
  onSession?(session: Session): void;
  /** Calls that are with a provider now; a planned reconnect waits for a quiet moment. */
  inFlight?(): number;
  /** A planned reconnect is next: no new work is to be taken; resolves when what was sent has arrived. */
  onHold?(): Promise<void>;
  /** The planned reconnect is over. */
  onRelease?(): void;
  /** The link has ended for good; nothing may stay pending. */
  onClosed?(reason: string): void;
}

export interface LinkParts {
  readonly platform: Platform;
  readonly clock: ServerClock;
  readonly log: Logger;
  readonly keys: ConnectionKeys;
  readonly label: string;
}

/**
 * One live connection to the platform: the socket, what we are allowed, whom we talk to. Surfaces (RPC,
 * health and so on) are built on it; it knows none of them.
 *
 * `wire` fills in what exists only once the socket is open; nobody gets a link before that.
 */
export class Link implements Connection {
  readonly platform: Platform;
  readonly clock: ServerClock;
  readonly log: Logger;
  readonly keys: ConnectionKeys;
  /** Deadlines of all calls of this connection, on one timer. */
  readonly wheel = new TimerWheel();
  readonly label: string;
  readonly renewal: SocketRenewal;
  readonly #phase: Phase<ConnectionStatus>;
  readonly #listeners = new Set<LinkListener>();
  readonly #closed: Promise<Error | undefined>;
  #resolveClosed: (error: Error | undefined) => void = () => {};
  #session: Session;
  /** What the last dial presented, and what the present socket was opened by. */
  #presented: Session;
  #socketSession: Session;
  #wired: Wired | undefined;
  #requests: BrokerRequests | undefined;
  #shut: Promise<void> | undefined;
  readonly #ends = new ConnectionEnds();
  /** When the newest route of our own deployment that we followed was stated. */
  #routeAt = 0;
  /** Why the own authorization does not count at the moment. */
  #invalid: string | undefined;
  /** Dials that the broker turned down since the last one that it took. */
  #refusals = 0;

  constructor(parts: LinkParts, session: Session) {
    this.platform = parts.platform;
    this.clock = parts.clock;
    this.log = parts.log;
    this.keys = parts.keys;
    this.label = parts.label;
    this.#session = session;
    this.#presented = session;
    this.#socketSession = session;
    this.renewal = new SocketRenewal(() => this.broker, {
      inFlight: () => this.#inFlight(),
      hold: async () => {
        await Promise.all([...this.#listeners].map(async (listener) => listener.onHold?.()));
      },
      release: () => this.#tell((listener) => listener.onRelease?.()),
    });
    this.#closed = new Promise((resolve) => {
      this.#resolveClosed = resolve;
    });
    this.#phase = new Phase<ConnectionStatus>({ phase: "connecting", since: this.clock.now(), attempt: 1 });
  }

  wire(wired: Wired): void {
    this.#wired = wired;
    this.#setPhase({ phase: "connected", since: this.clock.now(), server: wired.broker.serverName });
  }

  get broker(): Broker {
    return this.#need().broker;
  }
  get replies(): Inbox {
    return this.#need().replies;
  }
  /** Where JetStream answers. */
  get answers(): Inbox {
    return this.#need().answers;
  }
  /** Requests to JetStream; made when the first surface needs it. */
  get requests(): BrokerRequests {
    this.#requests ??= new BrokerRequests(this);
    return this.#requests;
  }
  get directGet(): DirectGet {
    return this.#need().directGet;
  }
  get routes(): Routes {
    return this.#need().routes;
  }
  get notices(): NoticeReader {
    return this.#need().notices;
  }
  get callers(): Callers {
    return this.#need().callers;
  }
  get revocations(): Revocations {
    return this.#need().revocations;
  }
  get refresher(): Refresher {
    return this.#need().refresher;
  }

  get session(): Session {
    return this.#session;
  }

  /** The session that the present socket was opened by: the broker reads permissions only then. */
  get socketSession(): Session {
    return this.#socketSession;
  }

  /** True while the socket has the permissions of an older policy: what is new waits for the next socket. */
  get policyPending(): boolean {
    return this.#session.authorization.policy !== this.#socketSession.authorization.policy;
  }

  get status(): ConnectionStatus {
    return this.#phase.current;
  }

  get closed(): Promise<Error | undefined> {
    return this.#closed;
  }

  get isClosed(): boolean {
    return this.#shut !== undefined;
  }

  subscribe(listener: (status: ConnectionStatus) => void): () => void {
    return this.#phase.subscribe(listener);
  }

  listen(listener: LinkListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** `undefined` when calls may be made; else why not: everything is unavailable without a valid authorization. */
  get unavailableBecause(): string | undefined {
    if (this.#shut !== undefined) return "closed";
    if (this.#invalid !== undefined) return this.#invalid;
    return this.clock.now() > this.#session.authorization.expiresAt ? "authorization expired" : undefined;
  }

  /** Installs a refreshed session: routes, availability and authorization switch in one step. */
  install(session: Session): void {
    if (this.#shut !== undefined) return;
    if (session.authorization.notBefore < this.#session.authorization.notBefore) return; // overtaken
    this.#session = session;
    this.#wired?.routes.install(session);
    this.#invalid = undefined;
    this.#tell((listener) => listener.onSession?.(session));
  }

  /** Answers the server's challenge with the newest authorization; called on every dial. */
  authenticate(nonce: string | undefined): BrokerCredentials {
    const nkey = userNkey(this.keys.session.publicKey);
    this.#presented = this.#session;
    // The session key signs nothing but what has the form of a nonce.
    if (nonce === undefined || !isNonce(nonce)) return { nkey, sig: "" };
    const sig = toBase64Url(this.keys.session.sign(new TextEncoder().encode(nonce)));
    return { nkey, sig, auth_token: this.#session.digestText };
  }

  onDown(reason: string): void {
    if (this.#shut !== undefined) return;
    this.#setPhase({ phase: "reconnecting", since: this.clock.now(), attempt: 0, reason });
    this.#tell((listener) => listener.onDown?.());
    if (this.unavailableBecause !== undefined) void this.#wired?.refresher.now();
  }

  onDialing(attempt: number): void {
    const { current } = this.#phase;
    if (current.phase !== "reconnecting") return;
    this.#phase.set({ ...current, attempt });
    // The servers may have moved; the control plane knows where to.
    if (attempt % attemptsBeforeAsking === 0) void this.#wired?.refresher.now();
  }

  /** A refusal is reason to ask whether we are still wanted; the more refusals in a row, the less often. */
  onRefused(): void {
    this.#refusals += 1;
    if (Number.isInteger(Math.log2(this.#refusals))) void this.#wired?.refresher.now();
  }

  onUp(): void {
    if (this.#shut !== undefined) return;
    this.#refusals = 0;
    this.#socketSession = this.#presented;
    const { broker, notices } = this.#need();
    this.#setPhase({ phase: "connected", since: this.clock.now(), server: broker.serverName });
    notices.readUp().catch((error: unknown) => {
      if (!this.isClosed)
        this.log.warn({ err: error }, "Could not read the platform's notices after a reconnect");
    });
    this.#tell((listener) => listener.onUp?.());
  }

  onRevocation(revocation: Revocation): void {
    const { revocations, callers, refresher } = this.#need();
    if (!revocations.add(revocation)) return;
    callers.applyRevocations();
    if (revocations.covers(this.#session.authorization)) {
      this.#invalid = "authorization revoked";
      void refresher.now();
    }
    this.#tell((listener) => listener.onRevocation?.(revocation));
  }

  onConnectionEnd(end: ConnectionEnd): void {
    if (!this.#ends.take(end, this.clock.now())) return;
    this.#tell((listener) => listener.onConnectionEnd?.(end));
  }

  onRoute(route: RouteNotice): void {
    this.#need().routes.onRoute(route);
    if (this.#concernsUs(route)) void this.refresher.now();
    this.#tell((listener) => listener.onRoute?.(route));
  }

  /** True for a route of our own deployment that our session does not reflect yet; others may repeat old ones. */
  #concernsUs(route: RouteNotice): boolean {
    const { assignment, authorization } = this.#session;
    if (route.deployment !== assignment.deployment) return false;
    if (route.issuedAt < authorization.notBefore || route.issuedAt <= this.#routeAt) return false;
    this.#routeAt = route.issuedAt;
    return true;
  }

  #inFlight(): number {
    let sum = 0;
    for (const listener of this.#listeners) sum += listener.inFlight?.() ?? 0;
    return sum;
  }

  close(): Promise<void> {
    return this.end("stopped");
  }

  /** Ends the link for good, once; with an error it ends in phase `error`. */
  end(reason: string, error?: Error): Promise<void> {
    this.#shut ??= this.#end(reason, error);
    return this.#shut;
  }

  async #end(reason: string, error: Error | undefined): Promise<void> {
    const wired = this.#wired;
    wired?.refresher.stop();
    wired?.notices.stop();
    this.renewal.stop();
    const since = this.clock.now();
    this.#setPhase(
      error === undefined ? { phase: "closed", since, reason } : { phase: "error", since, reason, error },
    );
    this.#tell((listener) => listener.onClosed?.(reason));
    this.wheel.stop();
    await wired?.broker.close();
    this.#resolveClosed(error);
  }

  #need(): Wired {
    if (this.#wired === undefined) {
      throw new TransportError({
        code: "trellis.connection.not_open",
        message: "The connection is not open yet.",
      });
    }
    return this.#wired;
  }

  #setPhase(status: ConnectionStatus): void {
    this.#phase.set(status);
    const fields = {
      phase: status.phase,
      service: this.label,
      ...("reason" in status ? { reason: status.reason } : {}),
    };
    if (status.phase === "error") this.log.error({ ...fields, err: status.error }, "Connection ended");
    else if (status.phase === "reconnecting") this.log.warn(fields, "Connection lost, reconnecting");
    else this.log.info(fields, `Connection ${status.phase}`);
  }

  #tell(call: (listener: LinkListener) => void): void {
    for (const listener of [...this.#listeners]) {
      try {
        call(listener);
      } catch (error) {
        this.log.error({ err: error }, "A surface failed to follow its connection");
      }
    }
  }
}

/** What exists once the socket is open. */
export interface Wired {
  readonly broker: Broker;
  readonly replies: Inbox;
  readonly answers: Inbox;
  readonly directGet: DirectGet;
  readonly routes: Routes;
  readonly notices: NoticeReader;
  readonly revocations: Revocations;
  readonly callers: Callers;
  readonly refresher: Refresher;
}
