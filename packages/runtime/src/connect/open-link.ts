import type { NatsConnection } from "@nats-io/nats-core";
import type { AnyParticipant } from "@trellis/contract";
import { type BootstrapAnswer, TransportError, toBase64Url } from "@trellis/protocol";
import { backoffDelay, sleep } from "../lifecycle/backoff.ts";
import type { Logger } from "../logging/logger.ts";
import type { Platform } from "../platform/platform.ts";
import { recordConnect, recordRefresh } from "../telemetry/connection-metrics.ts";
import type { BootstrapSource } from "./bootstrap-source.ts";
import { Broker } from "./broker.ts";
import { Callers } from "./callers.ts";
import type { ConnectionKeys } from "./connection-keys.ts";
import { DirectGet } from "./direct-get.ts";
import { isFinalRefusal } from "./http-bootstrap.ts";
import { Inbox } from "./inbox.ts";
import { Link } from "./link.ts";
import { NoticeReader } from "./notices.ts";
import { Refresher } from "./refresher.ts";
import { missingBinding } from "./required-bindings.ts";
import { Revocations } from "./revocations.ts";
import { Routes } from "./routes.ts";
import type { ServerClock } from "./server-clock.ts";
import type { Session } from "./session.ts";
import { verifyAnswer } from "./verify-answer.ts";

/**
 * How a connection comes to be: bootstrap, verify, dial, wire. Everything that may fail fails with a
 * `TransportError`, and whatever was opened before is closed again.
 */
export interface OpenLinkOptions {
  readonly platform: Platform;
  readonly clock: ServerClock;
  readonly log: Logger;
  readonly keys: ConnectionKeys;
  readonly source: BootstrapSource;
  readonly participant: AnyParticipant;
  readonly kind: "service" | "client";
  readonly label: string;
  readonly pinnedRoot?: string | undefined;
  readonly signal: AbortSignal;
  /** Jitter of the refresh, in [0, 1). */
  random(): number;
}

const retry = { initial: 200, max: 3_000 };
const dialTimeoutMs = 5_000;

export async function openLink(options: OpenLinkOptions): Promise<Link> {
  const started = options.clock.monotonic();
  const outcome = { kind: options.kind, outcome: "error" as "ok" | "error" };
  try {
    const session = await timed("bootstrap", options, () => bootstrap(options));
    const link = new Link(options, session);
    try {
      await timed("nats_connect", options, () => wire(link, options));
    } catch (error) {
      await link.end("connect failed");
      throw error;
    }
    outcome.outcome = "ok";
    return link;
  } finally {
    recordConnect({ phase: "total", ...outcome, ms: options.clock.monotonic() - started });
  }
}

async function timed<T>(
  phase: "bootstrap" | "nats_connect",
  options: OpenLinkOptions,
  work: () => Promise<T>,
): Promise<T> {
  const started = options.clock.monotonic();
  let outcome: "ok" | "error" = "error";
  try {
    const done = await work();
    outcome = "ok";
    return done;
  } finally {
    recordConnect({ phase, kind: options.kind, outcome, ms: options.clock.monotonic() - started });
  }
}

async function bootstrap(options: OpenLinkOptions): Promise<Session> {
  const answer = await retrying(options, "Waiting for the control plane", () =>
    options.source.bootstrap({ request: requestOf(options), keys: options.keys, signal: options.signal }),
  );
  const session = verified(options, answer);
  const missing = missingBinding(options.participant, session.resources);
  if (missing !== undefined) throw missing;
  return session;
}

function requestOf(options: OpenLinkOptions, session?: Session) {
  const { participant, keys } = options;
  return {
    version: 1 as const,
    kind: options.kind,
    identityKey: toBase64Url(keys.identity.publicKey),
    name: options.label,
    participant: { id: participant.id, digest: participant.digest, artifact: { ...participant.artifact } },
    sessionKey: toBase64Url(keys.session.publicKey),
    exchangeKey: toBase64Url(keys.exchange.publicKey),
    ...(session === undefined ? {} : { connection: session.connection }),
  };
}

function verified(options: OpenLinkOptions, answer: BootstrapAnswer, previous?: Session): Session {
  return verifyAnswer({
    port: options.platform.port,
    answer,
    keys: options.keys,
    participantId: options.participant.id,
    transport: options.platform.transport,
    now: options.clock.now(),
    pinnedRoot: options.pinnedRoot,
    previous,
  }).orThrow();
}

/** Repeats what fails for a reason that may pass, until the connect's own time is up. */
async function retrying<T>(options: OpenLinkOptions, waiting: string, attempt: () => Promise<T>): Promise<T> {
  for (let failures = 1; ; failures++) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof TransportError) || isFinalRefusal(error)) throw error;
      if (failures === 1)
        options.log.warn({ code: error.code, hint: error.hint }, `${waiting}: ${error.message}`);
      try {
        await sleep(backoffDelay(failures, retry), { signal: options.signal });
      } catch {
        throw error; // out of time: the failure says more than the time-out
      }
    }
  }
}

async function wire(link: Link, options: OpenLinkOptions): Promise<void> {
  const nats = await retrying(options, "Waiting for the broker", () => dial(link, options));
  const broker = new Broker(
    nats,
    {
      onDown: (reason) => link.onDown(reason),
      onDialing: (attempt) => link.onDialing(attempt),
      onRefused: () => link.onRefused(),
      onUp: () => link.onUp(),
      onClosed: (error) => void link.end(error === undefined ? "closed" : "connection closed", error),
    },
    options.log,
  );
  const { platform, clock, log, keys } = options;
  const { connection } = link.session;
  const replies = new Inbox(platform.port, connection, "r");
  const answers = new Inbox(platform.port, connection, "j");
  let denied: Error | undefined;
  for (const inbox of [replies, answers]) inbox.listen(broker, (error) => (denied = error));
  const directGet = new DirectGet(broker, answers);
  const revocations = new Revocations();
  const issuers = () => link.session.issuers;
  const callers = new Callers({ port: platform.port, directGet, clock, revocations, log, issuers });
  const notices = new NoticeReader({
    port: platform.port,
    broker,
    directGet,
    clock,
    log,
    listener: link,
    issuers,
  });
  const routes = new Routes(platform.port, keys.exchange, link.session);
  const refresher = new Refresher({
    clock,
    log,
    session: () => link.session,
    refresh: (signal) => refresh(link, { ...options, signal }),
    onFinal: (error) => void link.end(error.code, error),
    onOutcome: recordRefresh,
    random: options.random,
  });
  link.wire({ broker, replies, answers, directGet, routes, notices, revocations, callers, refresher });
  await inTime(options.signal, notices.start());
  if (denied !== undefined) throw denied;
  if (options.kind === "service") await retainOwnContext(link);
  refresher.start();
}

/** A provider is ready once it could verify a caller; its own authorization is the proof. */
async function retainOwnContext(link: Link): Promise<void> {
  const own = await link.callers.load(link.session.digestText, link.session.connection);
  if (own !== undefined && !own.revoked) return;
  throw new TransportError({
    code: "trellis.runtime.connect_failed",
    message: "The platform's authorization store does not hold this connection's own authorization.",
    hint: "Check that the control plane and this process use the same nats-server.",
  });
}

async function refresh(link: Link, options: OpenLinkOptions): Promise<void> {
  const { session } = link;
  const answer = await options.source.refresh({
    request: requestOf(options, session),
    keys: options.keys,
    signal: options.signal,
  });
  if (options.signal.aborted) return;
  const next = verified(options, answer, session);
  const policyChanged = next.authorization.policy !== session.authorization.policy;
  link.install(next);
  // The broker fixes permissions at connect: another policy takes effect with a new socket.
  if (policyChanged && link.broker.up) void link.renewal.request();
}

async function dial(link: Link, options: OpenLinkOptions): Promise<NatsConnection> {
  const dialing = options.platform.dial({
    servers: link.session.servers,
    name: options.label,
    inboxPrefix: link.session.authorization.inbox,
    authenticate: (nonce) => link.authenticate(nonce),
    holdBack: () => (link.unavailableBecause === undefined ? 0 : 1_000),
    timeoutMs: dialTimeoutMs,
  });
  try {
    return await inTime(options.signal, dialing);
  } catch (cause) {
    // Too late is not never: what opens after we gave up is closed again.
    void dialing.then((late) => late.close()).catch(() => {});
    if (cause instanceof TransportError) throw cause;
    throw connectFailed(link, cause);
  }
}

/** The promise, or a rejection as soon as the connect is aborted or out of time. */
async function inTime<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  signal.throwIfAborted();
  let onAbort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

function connectFailed(link: Link, cause: unknown): TransportError {
  return new TransportError({
    code: "trellis.runtime.connect_failed",
    message: "The broker did not accept the connection.",
    hint: `Check that nats-server is reachable at ${link.session.servers.join(", ")} and that the control plane is connected to it.`,
    context: { participant: link.session.participant.id, digest: link.session.participant.digest },
    cause,
  });
}
