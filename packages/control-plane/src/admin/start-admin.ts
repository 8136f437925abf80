import { rootFingerprint, toBase64Url } from "@trellis/protocol";
import { connectServiceWith, nodePlatform, PlainLink, silentLogger } from "@trellis/runtime/node";
import { JobWorkers } from "../jobs/job-workers.ts";
import type { Plane } from "../plane.ts";
import { deleteConnection } from "../storage/connections.ts";
import { handleCore } from "./core-service.ts";
import { handleEvents } from "./events-service.ts";
import { handleJobs } from "./jobs-service.ts";
import { platformParticipant } from "./participants.ts";
import { ensurePlatformRecords } from "./platform-records.ts";
import { platformSource } from "./platform-source.ts";
import { handleResources } from "./resources-service.ts";
import { handleState } from "./state-service.ts";

export interface AdminOptions {
  /** What the control plane dials. */
  servers: readonly string[];
  /** Hash of the dev token, in dev mode. */
  owner: string | null;
}

/**
 * Serves the platform's own APIs over the broker, by the same runtime as any other service. What is special:
 * its authorization comes from this very process, and its session key is one that the broker's configuration
 * lists. Returns how to end it.
 */
export async function startAdmin(plane: Plane, options: AdminOptions): Promise<() => Promise<void>> {
  const { port, keys, config, storage } = plane;
  const identity = port.ed25519.keyPair(keys.platformSeed);
  await ensurePlatformRecords(plane, identity.publicKey);
  const source = platformSource({ port, issue: plane.bootstrap.issue, servers: options.servers });
  const service = await connectServiceWith(
    {
      participant: platformParticipant,
      seed: toBase64Url(keys.platformSeed),
      root: rootFingerprint(port, keys.root.publicKey),
      timeout: config.startTimeoutMs,
      telemetry: false,
      runtime: { log: config.log },
    },
    {
      source,
      sessionSeed: keys.appSeed,
      platform: { ...nodePlatform, discover: () => ({ production: false }) },
    },
  ).orThrow();
  handleCore(service, plane, options.owner);
  handleState(service, plane);
  // What operators change goes over the platform's own link into the applications' account.
  const link = new PlainLink(plane.links.app, { port, log: silentLogger, connection: "trellis-app" });
  const workers = new JobWorkers({ nats: plane.links.app, storage, port, clock: config.clock });
  workers.start();
  handleJobs(service, plane, { link, workers });
  handleEvents(service, plane, options.owner);
  handleResources(service, plane, link);
  try {
    await service.start({ strict: true });
  } catch (error) {
    workers.stop();
    await service.stop();
    throw error;
  }
  return async () => {
    workers.stop();
    await service.stop({ timeout: 2_000 });
    // It never comes back under this id: the next start makes a new connection.
    await deleteConnection(storage.queries, service.auth.connectionId);
  };
}
