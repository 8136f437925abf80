import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { type AnyParticipant, defineService, job } from "@trellis/contract";
import { toHex } from "@trellis/protocol";
import {
  type JobEvent,
  type JobsBinding,
  type JobsLayout,
  jobQueueSubjects,
  jobsLayout,
  jobsPermissions,
  type StreamLayout,
} from "@trellis/protocol/jobs";
import { eventually, startNats, type TestNats } from "@trellis/testing";
import { Type } from "typebox";
import { ServerClock } from "../connect/server-clock.ts";
import { PlainLink } from "../jetstream/plain-link.ts";
import { type Clock, systemClock } from "../lifecycle/clock.ts";
import { Deadline } from "../lifecycle/deadline.ts";
import { within } from "../lifecycle/within.ts";
import { type Logger, silentLogger } from "../logging/logger.ts";
import { nodePort as port } from "../platform/node/port.ts";
import type { CallOrigin } from "../rpc/call-origin.ts";
import type { JobsFacade } from "./jobs-facade.ts";
import { JobsSurface } from "./jobs-surface.ts";

const Work = Type.Object({
  n: Type.Number(),
  site: Type.Optional(Type.Union([Type.String(), Type.Number()])),
  pad: Type.Optional(Type.String()),
});
const Done = Type.Object({ n: Type.Number(), pad: Type.Optional(Type.String()) });
const quick = { attempts: 3, backoff: ["20ms", "20ms"] } as const;
const one = { payload: Work, result: Done, retry: quick, ackWait: "1s" } as const;
const key = { key: ["/site"], heartbeatInterval: "200ms", heartbeatTtl: "1s" } as const;

export const plant = defineService("acme.plant", {
  jobs: {
    plain: job({ ...one, update: Type.Object({ percent: Type.Number() }) }),
    other: job(one),
    parked: job({ ...one, retry: { attempts: 2, backoff: ["1100ms"] } }),
    timed: job({ ...one, deadline: "600ms" }),
    fragile: job({ ...one, maxCrashes: 2 }),
    keyed: job({ ...one, keyConcurrency: key, queue: { maxQueuedPerKey: 1_000 } }),
    strict: job({ ...one, keyConcurrency: key }),
    merging: job({ ...one, keyConcurrency: key, queue: { maxQueuedPerKey: 1, whenFull: "coalesce" } }),
    replacing: job({
      ...one,
      keyConcurrency: key,
      queue: { maxQueuedPerKey: 1, whenFull: "replace-oldest" },
    }),
    blocking: job({ ...one, keyConcurrency: { ...key, stalePolicy: "block" } }),
    bounded: job({ ...one, queue: { maxQueuedPerKey: 2 } }),
    limited: job({ ...one, rateLimit: { limit: 5, per: "1s" } }),
    perKey: job({
      ...one,
      keyConcurrency: { ...key, maxActive: 9 },
      rateLimit: { limit: 2, per: "1500ms", perKey: true },
    }),
    wide: job({ ...one, keyConcurrency: { ...key, maxActive: 40 }, queue: { maxQueuedPerKey: 1_000 } }),
    hourly: job({
      ...one,
      schedules: {
        hour: { cron: "0 * * * *", payload: { n: 1 }, missed: "once" },
        half: { cron: "30 * * * *", payload: { n: 2 }, missed: "skip" },
      },
    }),
    ticking: job({ ...one, schedules: { second: { cron: "* * * * * *", payload: { n: 7 } } } }),
  },
});

export type Plant = typeof plant;
export interface Outer {
  readonly origin: CallOrigin;
}
export type Jobs = JobsFacade<Plant, Outer>;

/** A link without a control plane, with the server's clock. */
export class JobsTestLink extends PlainLink {
  declare readonly clock: ServerClock;

  constructor(nats: NatsConnection, input: { connection: string; clock?: Clock; log?: Logger }) {
    const { connection, clock = systemClock, log = silentLogger } = input;
    super(nats, { port, log, connection, clock: new ServerClock(clock) });
  }
}

export interface ReplicaOptions {
  readonly servers?: string;
  readonly clock?: Clock;
  readonly log?: Logger;
  readonly timeoutMs?: number;
  readonly participant?: AnyParticipant;
  /** Default: one that may do what jobs need, and nothing else. */
  readonly user?: string;
}

/** A process of the service: a connection, its surface, its queues. */
export interface Replica {
  readonly link: JobsTestLink;
  readonly surface: JobsSurface<Outer>;
  readonly jobs: Jobs;
  start(): Promise<void>;
  stop(ms?: number): Promise<void>;
}

let connections = 0;

export function testSurface(
  link: JobsTestLink,
  binding: JobsBinding | undefined,
  options: ReplicaOptions & { inbox: string },
) {
  return new JobsSurface<Outer>({
    participant: options.participant ?? plant,
    link,
    requests: link.requests,
    traced: true,
    timeoutMs: options.timeoutMs ?? 5_000,
    inbox: options.inbox,
    binding: () => binding,
    clientFor: (origin) => ({ origin }),
  });
}

/** A replica over a connection of a user that may do what jobs need, and nothing else. */
export async function openReplica(
  servers: string,
  binding: JobsBinding,
  options: ReplicaOptions = {},
): Promise<Replica> {
  const nats = await connect({
    servers: options.servers ?? servers,
    user: options.user ?? "worker",
    pass: options.user ?? "worker",
    maxReconnectAttempts: -1,
    reconnectTimeWait: 20,
    reconnectJitter: 20,
  });
  connections += 1;
  const connection = `test-${process.pid}-${connections}`;
  const link = new JobsTestLink(nats, { connection, ...options });
  const surface = testSurface(link, binding, { ...options, inbox: `_INBOX.${connection}` });
  return {
    link,
    surface,
    jobs: surface.facade(undefined) as Jobs,
    start: () => surface.start(),
    stop: async (ms = 2_000) => {
      await surface.stop(Deadline.after(ms));
      await link.close();
    },
  };
}

/** A server with the streams of a deployment's jobs. */
export class JobsBed {
  readonly nats: TestNats;
  readonly admin: NatsConnection;
  readonly manager: JetStreamManager;
  readonly layout: JobsLayout;
  readonly #replicas: Replica[] = [];

  constructor(parts: {
    nats: TestNats;
    admin: NatsConnection;
    manager: JetStreamManager;
    layout: JobsLayout;
  }) {
    this.nats = parts.nats;
    this.admin = parts.admin;
    this.manager = parts.manager;
    this.layout = parts.layout;
  }

  get binding(): JobsBinding {
    return this.layout.binding;
  }

  async replica(options: ReplicaOptions = {}): Promise<Replica> {
    const replica = await openReplica(this.nats.url, this.binding, options);
    this.#replicas.push(replica);
    return replica;
  }

  /** A replica that handles; `handle` registers. */
  async worker(handle: (jobs: Jobs) => void, options: ReplicaOptions = {}): Promise<Replica> {
    const replica = await this.replica(options);
    handle(replica.jobs);
    await replica.start();
    return replica;
  }

  /** Events of a job as they are stored, transitions and notes. */
  async events(queue: keyof Plant["jobs"], jobId: string): Promise<JobEvent[]> {
    const { transitions, notes } = this.subjects(queue);
    const events: { seq: number; event: JobEvent }[] = [];
    for (const filter of [`${transitions}.${jobId}.>`, `${notes}.${jobId}.*`]) {
      const info = await this.manager.streams.info(this.binding.stream, { subjects_filter: filter });
      for (const subject of Object.keys(info.state.subjects ?? {})) {
        for (let seq = 1; ; ) {
          const found = await this.manager.direct
            .getMessage(this.binding.stream, { seq, next_by_subj: subject })
            .catch(() => null);
          if (found === null) break;
          events.push({ seq: found.seq, event: found.json<JobEvent>() });
          seq = found.seq + 1;
        }
      }
    }
    return events.sort((a, b) => a.seq - b.seq).map(({ event }) => event);
  }

  subjects(queue: string) {
    const { deployment, secret } = this.binding;
    return jobQueueSubjects({ deployment, queue, secret });
  }

  /** Records of keys that are left. */
  keyRecords(queue: string): Promise<string[]> {
    return this.#records(`${queue}.k.*`);
  }

  /** Since when the time tables of a queue hold, as it is stored. */
  scheduleRecords(queue: string): Promise<string[]> {
    return this.#records(`${queue}.s.*`);
  }

  async #records(keys: string): Promise<string[]> {
    const { name } = this.layout.bucket;
    const info = await this.manager.streams.info(name, {
      subjects_filter: `$KV.${this.binding.bucket}.${keys}`,
    });
    const found: string[] = [];
    for (const subject of Object.keys(info.state.subjects ?? {})) {
      const message = await this.manager.direct.getMessage(name, { last_by_subj: subject });
      if (message !== null && message.header.get("KV-Operation") !== "DEL") found.push(message.string());
    }
    return found;
  }

  /** Messages that a queue's consumers have not seen the end of. */
  async outstanding(queue: keyof Plant["jobs"]): Promise<number> {
    let sum = 0;
    for (const consumer of Object.values(this.binding.queues[queue]?.work ?? {})) {
      const { num_pending, num_ack_pending } = await this.manager.consumers.info(
        this.binding.stream,
        consumer,
      );
      sum += num_pending + num_ack_pending;
    }
    return sum;
  }

  async settled(queue: keyof Plant["jobs"]): Promise<void> {
    await eventually(async () => (await this.outstanding(queue)) === 0, { timeout: 15_000, interval: 50 });
  }

  async restart(options?: { readonly kill?: boolean }): Promise<void> {
    await this.nats.restart(options);
    await eventually(async () => {
      await within(this.admin.flush(), 500);
      return (await this.manager.getAccountInfo()).streams >= 0;
    });
  }

  /** Ends every replica, and forgets every job: the next test begins anew. */
  async reset(): Promise<void> {
    await Promise.all(this.#replicas.splice(0).map((replica) => replica.stop(100)));
    await this.manager.streams.delete(this.layout.stream.name);
    await this.manager.streams.delete(this.layout.bucket.name);
    await provision(this.manager, this.layout);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#replicas.map((replica) => replica.stop(100)));
    await this.admin.close();
    await this.nats.stop();
  }
}

/** Makes what a layout says, as the control plane does. */
export async function provision(manager: JetStreamManager, layout: JobsLayout): Promise<void> {
  for (const stream of [layout.stream, layout.bucket]) await addStream(manager, stream);
  for (const consumer of layout.consumers) {
    const { filter_subjects, ...rest } = consumer;
    await manager.consumers.add(layout.stream.name, { ...rest, filter_subjects: [...filter_subjects] });
  }
}

async function addStream(manager: JetStreamManager, { subjects, ...rest }: StreamLayout): Promise<void> {
  const { config } = await manager.streams.add({ ...rest, subjects: [...subjects] });
  // An older server drops what it does not know without a word.
  if (rest.allow_msg_schedules === true && config.allow_msg_schedules !== true)
    throw new Error("the server knows no schedules");
}

export function plantLayout(participant: AnyParticipant = plant): JobsLayout {
  return jobsLayout({
    deployment: "plant1",
    service: "plant1",
    secret: toHex(port.random(16)),
    queues: Object.fromEntries(
      Object.entries(participant.jobs as Plant["jobs"]).map(([name, { policy }]) => [name, policy]),
    ),
  });
}

export async function startJobs(participant?: AnyParticipant): Promise<JobsBed> {
  const layout = plantLayout(participant);
  const { publish, subscribe } = jobsPermissions(layout.binding);
  const list = (subjects: readonly string[]) => subjects.map((subject) => JSON.stringify(subject)).join(", ");
  const nats = await startNats({
    config: `authorization { users = [
  { user: admin, password: admin }
  { user: worker, password: worker, permissions: {
      publish: { allow: [${list(publish)}] }
      subscribe: { allow: ["_INBOX.>", ${list(subscribe)}] } } }
] }`,
  });
  const admin = await connect({
    servers: nats.url,
    user: "admin",
    pass: "admin",
    maxReconnectAttempts: -1,
    reconnectTimeWait: 20,
  });
  const manager = await jetstreamManager(admin, { checkAPI: false });
  await provision(manager, layout);
  return new JobsBed({ nats, admin, manager, layout });
}
