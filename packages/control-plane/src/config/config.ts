import { randomBytes } from "node:crypto";
import { resolve } from "node:path";
import { type Clock, systemClock } from "@trellis/runtime/node";
import { systemTimers, type Timers } from "../lifecycle/timers.ts";
import { type Log, silentLog } from "./log.ts";

/** A broker that the control plane starts itself, on loopback. */
export interface ManagedBroker {
  kind: "managed";
  /** Path of a nats-server; found or fetched when omitted. */
  binary?: string;
  /** Ports; free ones when omitted. */
  port?: number;
  websocketPort?: number;
}

/** A broker, or a cluster of them, that somebody else runs with our configuration. */
export interface ExternalBroker {
  kind: "external";
  /** What the control plane connects to, and, unless told otherwise, what services are told. */
  servers: readonly string[];
  /** What services are told. Default `servers`. */
  advertised?: readonly string[];
  /** What browsers are told. Default none. */
  websocket?: readonly string[];
  /** Copies of the control plane's own streams. Default 1; 3 for a cluster. */
  replicas?: number;
}

/** What `startControlPlane` takes. */
export interface ControlPlaneConfig {
  /** Keys, database and, when managed, the broker's data. Created when missing. */
  dataDir: string;
  /** `dev` serves only its own machine and installs whatever holds the token. Default `server`. */
  mode?: "dev" | "server";
  /** Default `127.0.0.1` and a free port. */
  http?: {
    host?: string;
    port?: number;
    /** Origins under which clients reach us, e.g. `https://trellis.example`. Default: the loopback spellings. */
    origins?: readonly string[];
  };
  /** Default `{ kind: "managed" }`. */
  nats?: ManagedBroker | ExternalBroker;
  /** Dev mode only. Default: a random one, to be read from the result. */
  devToken?: string;
  authorization?: {
    /** Default one hour. */
    lifeMs?: number;
  };
  connections?: {
    /** How long a connection that is gone may come back under its id. Default 7 days. */
    keepMs?: number;
    /** The same for instances that dev mode provisioned. Default one minute. */
    ephemeralKeepMs?: number;
    /** How often ended authorizations are looked for. Default 5 s. */
    sweepMs?: number;
  };
  /** Failed credentials that one address may have in a minute. Default 60. */
  failuresPerMinute?: number;
  /** How long the start may take. Default 60 s: the broker may have to be fetched. */
  startTimeoutMs?: number;
  clock?: Clock;
  timers?: Timers;
  /** Default: silence. */
  log?: Log | false;
  /** Told of each step of dev mode, for the person in front of the terminal. */
  say?: (step: string) => void;
}

/** The configuration with every default in place. */
export interface ResolvedControlPlaneConfig {
  readonly dataDir: string;
  readonly mode: "dev" | "server";
  readonly host: string;
  readonly port: number;
  /** `undefined`: the loopback spellings of the port. */
  readonly origins: readonly string[] | undefined;
  readonly nats: ManagedBroker | ExternalBroker;
  /** Set in dev mode only. */
  readonly devToken: string | undefined;
  readonly lifeMs: number;
  readonly keepMs: number;
  readonly ephemeralKeepMs: number;
  readonly sweepMs: number;
  readonly failuresPerMinute: number;
  readonly startTimeoutMs: number;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Log;
  readonly say: (step: string) => void;
}

const hourMs = 3_600_000;
const loopback = new Set(["127.0.0.1", "localhost", "::1"]);

/** Fills in the defaults and refuses what cannot be meant. */
export function resolveConfig(config: ControlPlaneConfig): ResolvedControlPlaneConfig {
  const mode = config.mode ?? "server";
  const host = config.http?.host ?? "127.0.0.1";
  if (mode === "dev" && !loopback.has(host)) throw new Error("Dev mode listens on loopback only.");
  if (mode === "server" && config.devToken !== undefined)
    throw new Error("A dev token has no place in a server.");
  if (config.devToken !== undefined && !/^[\x21-\x7e]{16,256}$/.test(config.devToken)) {
    throw new Error("A dev token is 16 to 256 visible characters.");
  }
  return {
    dataDir: resolve(config.dataDir),
    mode,
    host,
    port: config.http?.port ?? 0,
    origins: config.http?.origins?.map(bareOrigin),
    nats: config.nats ?? { kind: "managed" },
    devToken: mode === "dev" ? (config.devToken ?? randomBytes(32).toString("base64url")) : undefined,
    lifeMs: config.authorization?.lifeMs ?? hourMs,
    keepMs: config.connections?.keepMs ?? 7 * 24 * hourMs,
    ephemeralKeepMs: config.connections?.ephemeralKeepMs ?? 60_000,
    sweepMs: config.connections?.sweepMs ?? 5_000,
    failuresPerMinute: config.failuresPerMinute ?? 60,
    startTimeoutMs: config.startTimeoutMs ?? 60_000,
    clock: config.clock ?? systemClock,
    timers: config.timers ?? systemTimers,
    log: config.log === undefined || config.log === false ? silentLog : config.log,
    say: config.say ?? (() => undefined),
  };
}

function bareOrigin(text: string): string {
  const { origin, protocol } = new URL(text);
  if (protocol !== "http:" && protocol !== "https:") throw new Error(`"${text}" is not an http origin.`);
  return origin;
}
