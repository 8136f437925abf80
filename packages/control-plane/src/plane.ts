import { jetstreamManager } from "@nats-io/jetstream";
import { type Port, rootFingerprint } from "@trellis/protocol";
import { Catalog } from "./authority/catalog.ts";
import { Installer } from "./authority/installer.ts";
import { Revoker } from "./authority/revoker.ts";
import { Statements } from "./authority/statements.ts";
import type { BootstrapDeps } from "./bootstrap/bootstrap.ts";
import { DevProvisioning } from "./bootstrap/dev-provisioning.ts";
import { RequestIds } from "./bootstrap/request-ids.ts";
import type { ResolvedControlPlaneConfig } from "./config/config.ts";
import { BrokerMonitor } from "./connections/broker-monitor.ts";
import { Sweeper } from "./connections/sweeper.ts";
import { ConnectionTracker } from "./connections/tracker.ts";
import type { KeyRing } from "./identity/key-ring.ts";
import { JobProjection } from "./jobs/job-projection.ts";
import type { Timer } from "./lifecycle/timers.ts";
import type { Broker } from "./links/broker.ts";
import type { Links } from "./links/links.ts";
import { NoticeOutbox } from "./notices/outbox.ts";
import type { NoticePublisher } from "./notices/publisher.ts";
import { NoticeStreams } from "./notices/reseed.ts";
import { OwnedStreams } from "./resources/owned-streams.ts";
import { Resources } from "./resources/resources.ts";
import { findConnection } from "./storage/connections.ts";
import { findDeployment } from "./storage/deployments.ts";
import type { Storage } from "./storage/storage.ts";

export interface PlaneInput {
  config: ResolvedControlPlaneConfig;
  port: Port;
  keys: KeyRing;
  storage: Storage;
  links: Links;
  broker: Broker;
  /** Hash of the dev token, in dev mode. */
  owner: string | null;
  origins(): readonly string[];
}

/** The parts of a control plane, wired to each other. */
export interface Plane {
  readonly port: Port;
  readonly config: ResolvedControlPlaneConfig;
  readonly keys: KeyRing;
  readonly storage: Storage;
  readonly links: Links;
  readonly catalog: Catalog;
  readonly statements: Statements;
  readonly streams: NoticeStreams;
  readonly resources: Resources;
  readonly jobs: JobProjection;
  readonly outbox: NoticeOutbox;
  readonly installer: Installer;
  readonly revoker: Revoker;
  readonly tracker: ConnectionTracker;
  readonly bootstrap: BootstrapDeps;
  /** Starts the timers; returns how to end them. */
  startUpkeep(): () => Promise<void>;
}

/** Wires the parts. Nothing is started here. */
export function buildPlane(input: PlaneInput): Plane {
  const { config, port, keys, storage, links, broker } = input;
  const { clock, log } = config;
  const catalog = new Catalog();
  const statements = new Statements({ port, keys, clock });
  const streams = new NoticeStreams({
    nats: links.ctl,
    storage,
    statements,
    clock,
    replicas: broker.replicas,
  });
  const resources = buildResources(input);
  const jobs = new JobProjection({
    nats: links.app,
    storage,
    port,
    clock,
    log,
    retention: (deployment, queue) => retentionOf({ storage, catalog }, deployment, queue),
  });
  const tracker = buildTracker(input, statements, streams.publisher);
  const outbox = new NoticeOutbox({ port, clock, storage, statements, publisher: streams.publisher, log });
  const revoker = new Revoker({ port, clock, storage, statements, outbox, kicker: tracker });
  const installer = new Installer({ port, clock, storage, outbox });
  const sweeper = new Sweeper({
    storage,
    tracker,
    clock,
    keepMs: config.keepMs,
    ephemeralKeepMs: config.ephemeralKeepMs,
    audit: (action, subject) => revoker.audit("platform", action, subject),
  });
  const parts = {
    port,
    config,
    keys,
    storage,
    links,
    catalog,
    statements,
    streams,
    resources,
    jobs,
    outbox,
    installer,
    revoker,
    tracker,
  };
  return {
    ...parts,
    bootstrap: bootstrapDeps(input, parts),
    startUpkeep: () => startUpkeep({ config, links, streams, resources, jobs, outbox, tracker, sweeper }),
  };
}

function buildResources({ port, keys, storage, links, broker, config }: PlaneInput): Resources {
  return new Resources({
    port,
    clock: config.clock,
    log: config.log,
    storage,
    streams: new OwnedStreams(() => jetstreamManager(links.app, { checkAPI: false }), broker.replicas),
    platform: rootFingerprint(port, keys.root.publicKey),
  });
}

function buildTracker(
  input: PlaneInput,
  statements: Statements,
  notices: NoticePublisher,
): ConnectionTracker {
  const { storage, links } = input;
  const { clock, timers, log } = input.config;
  return new ConnectionTracker({
    storage,
    monitor: new BrokerMonitor(links.sys),
    clock,
    timers,
    log,
    announceEnd: async (connection, reason) => {
      const row = await findConnection(storage.queries, connection);
      if (row === undefined) return;
      const { deploymentId: deployment, instanceId: instance } = row;
      const end = { connection, deployment, instance, at: clock.now(), reason };
      await notices.notice("connection-end", connection, statements.connectionEnd(end));
    },
  });
}

function bootstrapDeps(input: PlaneInput, parts: Omit<Plane, "bootstrap" | "startUpkeep">): BootstrapDeps {
  const { config, broker, links, owner } = input;
  const { port, keys, storage, catalog, statements, streams, resources, installer, tracker } = parts;
  const { clock, say } = config;
  return {
    authenticate: {
      port,
      requestIds: new RequestIds(),
      origins: () => input.origins(),
      startedAt: clock.now(),
      devToken: config.devToken,
    },
    admission: {
      storage,
      catalog,
      dev: owner === null ? undefined : new DevProvisioning({ storage, installer, owner, say }),
    },
    issue: {
      port,
      clock,
      keys,
      storage,
      catalog,
      statements,
      resources,
      log: config.log,
      notices: streams.publisher,
      kicker: tracker,
      lifeMs: config.lifeMs,
      platformApisAreOpen: config.mode === "dev",
      transports: () => broker.transports,
      maxPayload: () => links.app.info?.max_payload,
    },
    log: config.log,
  };
}

/** Sweeps at intervals, and takes stock anew whenever a link was lost: what happened meanwhile was not seen. */
function startUpkeep(parts: {
  config: ResolvedControlPlaneConfig;
  links: Links;
  streams: NoticeStreams;
  resources: Resources;
  jobs: JobProjection;
  outbox: NoticeOutbox;
  tracker: ConnectionTracker;
  sweeper: Sweeper;
}): () => Promise<void> {
  const { config, links, streams, resources, jobs, outbox, tracker, sweeper } = parts;
  let stopped = false;
  let timer: Timer | undefined;
  let sweeping: Promise<void> = Promise.resolve();
  const attempt = async (step: string, work: () => Promise<void>): Promise<void> => {
    try {
      if (!stopped) await work();
    } catch (error) {
      if (!stopped)
        config.log.warn({ code: `trellis.control_plane.${step}_failed`, error }, "Will be tried again.");
    }
  };
  const next = (delayMs: number) => {
    timer = config.timers.set(
      () => {
        sweeping = attempt("sweep", async () => {
          // Told before kicked: providers must know when the kicked one comes back.
          await outbox.flush();
          await sweeper.sweep();
          await streams.seed(() => stopped);
          await jobs.sync();
        }).then(() => {
          if (!stopped) next(config.sweepMs);
        });
      },
      delayMs,
      { background: true },
    );
  };
  links.onReconnect("sys", () => void attempt("reconcile", () => tracker.reconcile()));
  links.onReconnect(
    "ctl",
    () =>
      void attempt("streams", async () => {
        await streams.ensure();
        await outbox.flush();
      }),
  );
  const restore = () => void attempt("resources", () => resources.restore());
  links.onReconnect("app", restore);
  restore();
  next(0);
  return async () => {
    stopped = true;
    timer?.clear();
    await sweeping;
    await jobs.stop();
  };
}

const defaultRetentionMs = 7 * 86_400_000;

/** How long a queue's jobs that are over are shown: as its deployment's present revision says. */
async function retentionOf(
  { storage, catalog }: Pick<Plane, "storage" | "catalog">,
  deployment: string,
  queue: string,
): Promise<number> {
  const row = await findDeployment(storage.queries, deployment);
  if (row === undefined) return defaultRetentionMs;
  const artifact = await catalog.artifact(storage.queries, row.participantId, row.participantDigest);
  return artifact?.jobs[queue]?.retentionMs ?? defaultRetentionMs;
}
