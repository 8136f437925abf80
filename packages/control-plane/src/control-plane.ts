import { join } from "node:path";
import { rootFingerprint, type Transports } from "@trellis/protocol";
import { nodePort, Scope } from "@trellis/runtime/node";
import { startAdmin } from "./admin/start-admin.ts";
import { tokenOwner } from "./bootstrap/dev-gate.ts";
import { loopbackOrigins } from "./bootstrap/origins.ts";
import { CalloutResponder } from "./callout/responder.ts";
import { type ControlPlaneConfig, type ResolvedControlPlaneConfig, resolveConfig } from "./config/config.ts";
import type { CoreHandlers } from "./core/api.ts";
import { coreHandlers } from "./core/handlers.ts";
import { httpApp } from "./http/app.ts";
import { listen, peerAddress } from "./http/server.ts";
import { loadKeyFile } from "./identity/key-file.ts";
import { KeyRing } from "./identity/key-ring.ts";
import { type Broker, openBroker } from "./links/broker.ts";
import { type Links, openLinks } from "./links/links.ts";
import type { ManagedNats } from "./nats/server.ts";
import { buildPlane, type Plane } from "./plane.ts";
import { claimMode } from "./storage/meta.ts";
import { Storage } from "./storage/storage.ts";

/** Why a control plane ended. */
export type ControlPlaneEnd = "stopped" | "broker_exited";

/** A running control plane. */
export interface ControlPlane extends AsyncDisposable {
  /** Where clients bootstrap. */
  readonly url: string;
  /** What clients pin (`TRELLIS_ROOT`). */
  readonly rootFingerprint: string;
  /** Dev mode only: whoever holds it may install and connect anything. */
  readonly devToken: string | undefined;
  readonly transports: Transports;
  /** The broker's process, when it is ours. */
  readonly nats: ManagedNats | undefined;
  /** The platform's own API, in process. */
  readonly core: CoreHandlers;
  /** Parts for those that build the platform's services on top; not for applications. */
  readonly plane: Plane;
  readonly closed: Promise<ControlPlaneEnd>;
  /** Ends everything that was started, the managed broker included. Idempotent. */
  stop(): Promise<void>;
}

/**
 * Starts a control plane: keys, a port, storage and broker, links into the four accounts, streams, callout,
 * connections, the platform's own APIs, requests, in this order; it stops in the reverse one. A start that fails
 * leaves nothing open.
 */
export async function startControlPlane(config: ControlPlaneConfig): Promise<ControlPlane> {
  const resolved = resolveConfig(config);
  const scope = new Scope({ name: "control plane" });
  try {
    return await withTimeout(resolved, start(resolved, scope));
  } catch (error) {
    await scope.close();
    throw error;
  }
}

async function start(config: ResolvedControlPlaneConfig, scope: Scope): Promise<ControlPlane> {
  const { clock, log } = config;
  const port = nodePort;
  const keys = new KeyRing(port, loadKeyFile(join(config.dataDir, "keys.json"), clock.now()));
  const listener = await listen(config.host, config.port);
  scope.add("http", () => listener.stop());
  const origins = config.origins ?? loopbackOrigins(listener.port);
  const [storage, broker] = await openBoth({ config, keys, scope, origins });
  const links = await openLinks(broker.servers, keys);
  scope.add("links", () => links.close());
  const owner = config.devToken === undefined ? null : tokenOwner(config.devToken);
  const plane = buildPlane({
    config,
    port,
    keys,
    storage,
    links,
    broker,
    owner,
    origins: () => origins,
  });
  await Promise.all([plane.streams.ensure(), plane.resources.start()]);
  const callout = new CalloutResponder({
    nats: links.callout,
    storage,
    keys: keys.callout,
    clock,
    log,
  });
  scope.add("callout", callout.start());
  await links.callout.flush();
  await plane.tracker.start();
  scope.add("connections", () => plane.tracker.stop());
  scope.add("upkeep", plane.startUpkeep());
  scope.add("admin", await startAdmin(plane, { servers: broker.servers, owner }));
  const app = httpApp({
    clock,
    bootstrap: plane.bootstrap,
    dev: config.mode === "dev",
    issuers: () => plane.statements.issuers(),
    transports: () => broker.transports,
    notReady: () => links.down(),
    failuresPerMinute: config.failuresPerMinute,
    addressOf: peerAddress,
  });
  listener.serve(app);
  scope.add("requests", () => listener.serve(undefined));
  return running({ config, scope, keys, broker, plane, links, owner, httpPort: listener.port });
}

/** Storage and broker know nothing of each other: they open side by side, and both are closed when one fails. */
async function openBoth(input: {
  config: ResolvedControlPlaneConfig;
  keys: KeyRing;
  scope: Scope;
  origins: readonly string[];
}): Promise<[Storage, Broker]> {
  const { config, keys, scope, origins } = input;
  const storage = Storage.open(join(config.dataDir, "trellis.db"));
  const broker = openBroker({
    config: config.nats,
    dataDir: config.dataDir,
    keys: keys.brokerKeys,
    websocketOrigins: origins,
    say: config.say,
  });
  const settled = await Promise.allSettled([storage, broker]);
  if (settled[0].status === "fulfilled") scope.add("storage", () => storage.then((opened) => opened.close()));
  if (settled[1].status === "fulfilled")
    scope.add("broker", () => broker.then((opened) => opened.managed?.stop()));
  const opened: [Storage, Broker] = [await storage, await broker];
  await claimMode(opened[0], config.mode);
  return opened;
}

function running(parts: {
  config: ResolvedControlPlaneConfig;
  scope: Scope;
  keys: KeyRing;
  broker: Broker;
  plane: Plane;
  links: Links;
  owner: string | null;
  httpPort: number;
}): ControlPlane {
  const { config, scope, keys, broker, plane, owner } = parts;
  let settle: (end: ControlPlaneEnd) => void = () => undefined;
  const closed = new Promise<ControlPlaneEnd>((resolve) => {
    settle = resolve;
  });
  let stopping: Promise<void> | undefined;
  const stop = (end: ControlPlaneEnd): Promise<void> => {
    stopping ??= scope.close().then((failures) => {
      for (const { name, error } of failures) {
        config.log.warn(
          { code: "trellis.control_plane.close_failed", part: name, error },
          "A part did not close.",
        );
      }
      settle(end);
    });
    return stopping;
  };
  void broker.managed?.closed.then(({ reason }) => {
    if (reason !== "exited") return;
    config.log.error(
      { code: "trellis.control_plane.broker_exited" },
      "The managed nats-server ended by itself.",
    );
    void stop("broker_exited");
  });
  return {
    url: config.origins?.[0] ?? `http://${config.host === "::1" ? "[::1]" : config.host}:${parts.httpPort}`,
    rootFingerprint: rootFingerprint(plane.port, keys.root.publicKey),
    devToken: config.devToken,
    transports: broker.transports,
    nats: broker.managed,
    core: coreHandlers(plane, { name: "administrator", owner }),
    plane,
    closed,
    stop: () => stop("stopped"),
    [Symbol.asyncDispose]: () => stop("stopped"),
  };
}

function withTimeout<T>(config: ResolvedControlPlaneConfig, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = () =>
      reject(new Error(`The control plane did not start within ${config.startTimeoutMs} ms.`));
    const timer = config.timers.set(late, config.startTimeoutMs);
    work.then(resolve, reject).finally(() => timer.clear());
  });
}
