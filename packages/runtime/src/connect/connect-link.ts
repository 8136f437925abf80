import type { AnyParticipant } from "@trellis/contract";
import { TransportError } from "@trellis/protocol";
import { AsyncResult, UnexpectedError } from "@trellis/result";
import { platform as hostPlatform } from "#platform";
import type { FeedLimits } from "../feeds/feed-provider.ts";
import { type Clock, systemClock } from "../lifecycle/clock.ts";
import { Deadline } from "../lifecycle/deadline.ts";
import { deadlineSignal } from "../lifecycle/signals.ts";
import { createLogger, guardedLogger, type Logger, silentLogger } from "../logging/logger.ts";
import type { DiscoveredSettings, Platform } from "../platform/platform.ts";
import type { AdmissionLimits } from "../rpc/admission.ts";
import type { NoResponderRetry } from "../rpc/call-recovery.ts";
import type { BootstrapSource } from "./bootstrap-source.ts";
import { createConnectionKeys } from "./connection-keys.ts";
import { httpBootstrap } from "./http-bootstrap.ts";
import type { Link } from "./link.ts";
import { openLink } from "./open-link.ts";
import { ServerClock } from "./server-clock.ts";

/** What a connect may be told about the running of the process. */
export interface RuntimeOptions {
  /** A pino-compatible logger, or `false` for silence. Default: lines on stderr. */
  readonly log?: Logger | false;
  /** Default time-out of a call, ms. Default 30 000. */
  readonly timeout?: number;
  /** How long a call waits for a provider to appear. Default 5 s, from 50 ms up to 500 ms apart. */
  readonly noResponderRetry?: NoResponderRetry | false;
  readonly health?: { /** Heartbeat interval, ms. Default 30 000. */ readonly publishIntervalMs?: number };
  /** How much work a service takes on at once. */
  readonly admission?: AdmissionLimits;
  /** How many sessions of its feeds a service has open at once. */
  readonly feeds?: FeedLimits;
}

export interface ConnectArgs<P extends AnyParticipant> {
  readonly participant: P;
  /** Origin of the control plane. Default: TRELLIS_URL, else a running `trellis dev`. */
  readonly trellisUrl?: string;
  /** base64url of the 32-byte identity seed. Default: TRELLIS_SEED; in development a fresh one is made. */
  readonly seed?: string;
  /** Fingerprint of the platform's root key to insist on. Default: TRELLIS_ROOT. */
  readonly root?: string;
  /** Label of this process in logs and lists. Default: the participant's id. */
  readonly name?: string;
  /** Budget of the whole connect, ms. Default 30 000; 0 waits for ever. */
  readonly timeout?: number;
  /** `false` leaves out spans. Default: the OpenTelemetry API, which does nothing without an SDK. */
  readonly telemetry?: false | { readonly enabled: boolean };
  readonly runtime?: RuntimeOptions;
  /** Aborts a connect in progress. */
  readonly signal?: AbortSignal;
}

/** Ways for tests and for the control plane's own services to replace parts of a connect. Not for users. */
export interface ConnectDeps {
  readonly platform?: Platform;
  readonly source?: BootstrapSource;
  /** A static session key: of the platform's own connection, which the broker knows by its configuration. */
  readonly sessionSeed?: Uint8Array;
  readonly random?: () => number;
  /** Default: the machine's. */
  readonly clock?: Clock;
}

/** Options of a connect with every default filled in. */
export interface ConnectSettings {
  readonly label: string;
  readonly log: Logger;
  readonly timeoutMs: number;
  readonly noResponderRetry: NoResponderRetry | false;
  readonly heartbeatMs: number;
  readonly admission: AdmissionLimits | undefined;
  readonly feeds: FeedLimits | undefined;
  readonly traced: boolean;
}

const defaultTimeoutMs = 30_000;
const defaultRetry: NoResponderRetry = { maxElapsed: 5_000, initial: 50, max: 500 };

export interface ConnectedLink {
  readonly link: Link;
  readonly settings: ConnectSettings;
}

/** Opens a link for a participant; every failure is typed and leaves nothing open. */
export function connectLink<P extends AnyParticipant>(
  args: ConnectArgs<P>,
  kind: "service" | "client",
  deps: ConnectDeps = {},
): AsyncResult<ConnectedLink, TransportError | UnexpectedError> {
  return AsyncResult.try(
    () => connect(args, kind, deps),
    (thrown) => (thrown instanceof TransportError ? thrown : UnexpectedError.from(thrown)),
  );
}

async function connect<P extends AnyParticipant>(
  args: ConnectArgs<P>,
  kind: "service" | "client",
  deps: ConnectDeps,
): Promise<ConnectedLink> {
  const platform = deps.platform ?? hostPlatform;
  const found = { ...platform.discover(), ...explicit(args) };
  const settings = resolveSettings(args, platform);
  const clock = new ServerClock(deps.clock ?? systemClock);
  const keys = createConnectionKeys(platform.port, found.seed, deps.sessionSeed).orThrow();
  const source = deps.source ?? httpBootstrap({ platform, clock, kind, ...address(found) });
  if (found.seed === undefined && deps.source === undefined && found.devToken === undefined)
    throw noIdentity();
  if (found.production && found.root === undefined && deps.source === undefined) {
    settings.log.warn({ setting: "TRELLIS_ROOT" }, "The platform's root key is trusted on first use; pin it");
  }
  const limit = args.timeout ?? defaultTimeoutMs;
  const budget = deadlineSignal(limit === 0 ? Deadline.never() : Deadline.after(limit), {
    signal: args.signal,
    reason: () => timedOut(limit),
  });
  try {
    const link = await openLink({
      platform,
      clock,
      log: settings.log,
      keys,
      source,
      participant: args.participant,
      kind,
      label: settings.label,
      pinnedRoot: found.root,
      signal: budget.signal,
      random: deps.random ?? Math.random,
    });
    return { link, settings };
  } catch (error) {
    throw args.signal?.aborted === true ? aborted(args.signal) : error;
  } finally {
    budget.unlink();
  }
}

function explicit<P extends AnyParticipant>(args: ConnectArgs<P>): Omit<DiscoveredSettings, "production"> {
  const { trellisUrl, seed, root } = args;
  return {
    ...(trellisUrl === undefined ? {} : { trellisUrl }),
    ...(seed === undefined ? {} : { seed }),
    ...(root === undefined ? {} : { root }),
  };
}

function resolveSettings<P extends AnyParticipant>(
  args: ConnectArgs<P>,
  platform: Platform,
): ConnectSettings {
  const { runtime = {}, telemetry = { enabled: true } } = args;
  const label = args.name ?? args.participant.id;
  const { log } = runtime;
  return {
    label,
    log: log === false ? silentLogger : guardedLogger(log ?? createLogger(platform.logSink, label)),
    timeoutMs: runtime.timeout ?? defaultTimeoutMs,
    noResponderRetry: runtime.noResponderRetry ?? defaultRetry,
    heartbeatMs: runtime.health?.publishIntervalMs ?? 30_000,
    admission: runtime.admission,
    feeds: runtime.feeds,
    traced: telemetry !== false && telemetry.enabled,
  };
}

function address(found: DiscoveredSettings): { trellisUrl: string; devToken: string | undefined } {
  if (found.trellisUrl !== undefined) return { trellisUrl: found.trellisUrl, devToken: found.devToken };
  throw new TransportError({
    code: "trellis.runtime.no_url",
    message: "No platform address is known.",
    hint: "Start one with `trellis dev` in this project, pass `trellisUrl`, or set TRELLIS_URL.",
  });
}

function noIdentity(): TransportError {
  return new TransportError({
    code: "trellis.runtime.no_identity",
    message: "This process has no identity for the platform.",
    hint: "Provision an instance with `trellis svc provision` and set TRELLIS_SEED, or use `trellis dev`.",
  });
}

function timedOut(limit: number): TransportError {
  return new TransportError({
    code: "trellis.runtime.connect_timeout",
    message: `Connecting took longer than ${limit} ms.`,
    hint: "Check that the control plane and nats-server are reachable: `trellis doctor`.",
  });
}

function aborted(signal: AbortSignal): TransportError {
  return new TransportError({
    code: "trellis.runtime.connect_aborted",
    message: "The connect was aborted.",
    cause: signal.reason,
  });
}
