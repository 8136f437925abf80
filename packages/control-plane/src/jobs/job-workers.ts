import type { NatsConnection, Subscription } from "@nats-io/nats-core";
import { compileSchema } from "@trellis/contract";
import {
  decodeJsonBytes,
  fromBase64Url,
  type Heartbeat,
  type Port,
  type Signed,
  SignedSchema,
  verifyHeartbeat,
} from "@trellis/protocol";
import { type JobWorkerPresence, readJobWorkers } from "@trellis/protocol/jobs";
import type { Clock } from "@trellis/runtime/node";
import { findConnection } from "../storage/connections.ts";
import type { Storage } from "../storage/storage.ts";

export interface JobWorkersDeps {
  readonly nats: NatsConnection;
  readonly storage: Storage;
  readonly port: Port;
  readonly clock: Clock;
}

/** A worker as it last told of itself. */
export interface SeenWorker extends JobWorkerPresence {
  readonly deployment: string;
  readonly service: string;
  readonly instance: string;
  readonly connection: string;
  /** When its heartbeat came, ms. */
  readonly seenAt: number;
  readonly uptimeMs: number;
  /** Its heartbeat is overdue. */
  readonly isLate: boolean;
}

interface Seen {
  readonly heartbeat: Heartbeat;
  readonly workers: readonly JobWorkerPresence[];
  readonly at: number;
}

/** Connections that are remembered; those heard of longest ago go first. */
const maxSeen = 10_000;
/** Of a heartbeat's interval: what it may come later before it is late. */
const slack = 1.25;

/**
 * Who does the jobs: kept in memory, from the heartbeats of the processes. One that has missed two of them is gone; so
 * is one whose connection ended.
 *
 * Invariant: what is shown of a connection was signed by the session key that its authorization names.
 */
export class JobWorkers {
  readonly #deps: JobWorkersDeps;
  readonly #seen = new Map<string, Seen>();
  #subscription: Subscription | undefined;

  constructor(deps: JobWorkersDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#subscription = this.#deps.nats.subscribe("health.v1.service.*.*", {
      callback: (error, message) => {
        if (error === null) void this.#take(message.subject, message.data);
      },
    });
  }

  stop(): void {
    this.#subscription?.unsubscribe();
    this.#seen.clear();
  }

  /** The workers of a deployment, or of all. */
  async list(deployment?: string): Promise<SeenWorker[]> {
    const { clock, storage } = this.#deps;
    const now = clock.now();
    const found: SeenWorker[] = [];
    for (const [connection, { heartbeat, workers, at }] of this.#seen) {
      const { instance, name: service, intervalMs, uptimeMs } = heartbeat;
      if (now - at > 2 * slack * intervalMs) this.#seen.delete(connection);
      else if (deployment === undefined || deployment === heartbeat.deployment) {
        const row = await findConnection(storage.queries, connection);
        if (row === undefined || row.state === "disconnected") continue;
        const place = { deployment: heartbeat.deployment, service, instance, connection };
        const isLate = now - at > slack * intervalMs;
        for (const worker of workers) found.push({ ...worker, ...place, seenAt: at, uptimeMs, isLate });
      }
    }
    return found;
  }

  async #take(subject: string, data: Uint8Array): Promise<void> {
    const { storage, port, clock } = this.#deps;
    const [, , , deployment = "", connection = ""] = subject.split(".");
    const body = decodeJsonBytes(port, data);
    if (!body.ok || compileSchema(SignedSchema).issues(body.value) !== undefined) return;
    const row = await findConnection(storage.queries, connection).catch(() => undefined);
    const publicKey = row?.deploymentId === deployment ? fromBase64Url(row.sessionKey) : undefined;
    if (publicKey === undefined) return;
    const verified = verifyHeartbeat(port, { signed: body.value as Signed, publicKey });
    if (verified.isErr()) return;
    const heartbeat = verified.value;
    const known = this.#seen.get(connection);
    if (heartbeat.connection !== connection || heartbeat.deployment !== deployment) return;
    // One that was kept back, or is sent again, tells nothing new.
    if (known !== undefined && heartbeat.at <= known.heartbeat.at) return;
    this.#remember(connection, { heartbeat, workers: readJobWorkers(heartbeat), at: clock.now() });
  }

  #remember(connection: string, seen: Seen): void {
    this.#seen.delete(connection);
    if (seen.workers.length === 0) return;
    if (this.#seen.size >= maxSeen) {
      const [oldest] = this.#seen.keys();
      if (oldest !== undefined) this.#seen.delete(oldest);
    }
    this.#seen.set(connection, seen);
  }
}
