import {
  type ConsumerConfig,
  type ConsumerCreateOptions,
  type ConsumerUpdateConfig,
  JetStreamApiError,
  type JetStreamManager,
  type StreamInfo,
} from "@nats-io/jetstream";
import { jobsLayout } from "@trellis/protocol/jobs";
import { changeableConfig, consumerConfig } from "./consumer-config.ts";
import { BrokerLimit, ForeignResource } from "./resource-errors.ts";
import { streamConfig, type WantedStream } from "./stream-config.ts";
import { streamOf, type WantedResource } from "./wanted.ts";

/** In whose name something is made: what stands in the metadata of every stream and consumer of ours. */
export interface Owner {
  /** Fingerprint of the platform's root key. */
  readonly platform: string;
  readonly deployment: string;
}

/** What a stream holds. */
export interface Usage {
  readonly messages: number;
  readonly bytes: number;
}

const streamExists = 10058;
const streamUnknown = 10059;
/** Another stream has taken the subjects: nobody of ours would. */
const subjectsOverlap = 10065;
/** Streams, consumers, bytes: of the account, or of the server. */
const limitsReached = new Set([10002, 10023, 10026, 10027, 10028, 10047, 10113, 10122]);
const consumerUnknown = 10014;
const consumerExists = new Set([10013, 10148]);

/**
 * Streams, buckets and consumers on the broker, each marked with its owner. What does not carry our mark is never
 * adopted, changed or destroyed, whatever it is called.
 */
export class OwnedStreams {
  readonly #manager: () => Promise<JetStreamManager>;
  readonly #replicas: number;

  constructor(manager: () => Promise<JetStreamManager>, replicas: number) {
    this.#manager = manager;
    this.#replicas = replicas;
  }

  /**
   * Makes a resource, or changes the one that is there to what is wanted; says whether it was made. Throws a
   * `ForeignResource` or a `BrokerLimit`.
   */
  async ensure(owner: Owner, wanted: WantedResource): Promise<boolean> {
    try {
      return await this.#ensure(await this.#manager(), wanted, markOf(owner, wanted));
    } catch (error) {
      const label = wanted.alias === "" ? wanted.kind : wanted.alias;
      if (!(error instanceof JetStreamApiError)) throw error;
      if (error.code === subjectsOverlap) throw new ForeignResource(label);
      throw limitsReached.has(error.code) ? new BrokerLimit(label, error) : error;
    }
  }

  async #ensure(
    manager: JetStreamManager,
    wanted: WantedResource,
    mark: Record<string, string>,
  ): Promise<boolean> {
    if (wanted.kind === "consumer") return ensureConsumer(manager, wanted, mark);
    if (wanted.kind === "jobs") return this.#ensureJobs(manager, wanted, mark);
    const label = wanted.alias === "" ? wanted.kind : wanted.alias;
    return this.#ensureStream(manager, { ...streamConfig(wanted), metadata: mark }, label);
  }

  /** Makes or changes a stream that all deployments share. */
  async ensureShared(platform: string, wanted: WantedStream): Promise<void> {
    const mark = markOf({ platform, deployment: "*" }, { kind: "shared", alias: "" });
    await this.#ensureStream(await this.#manager(), { ...wanted, metadata: mark }, wanted.name);
  }

  /** How much is in a resource's stream; `undefined` when the broker does not have it. */
  async usage(resource: Pick<WantedResource, "kind" | "name">): Promise<Usage | undefined> {
    const manager = await this.#manager();
    const info = await orMissing(manager.streams.info(streamOf(resource)), streamUnknown);
    return info === undefined ? undefined : { messages: info.state.messages, bytes: info.state.bytes };
  }

  /** Deletes a resource with all that is in it; says whether it was there. Throws a `ForeignResource`. */
  async destroy(owner: Owner, resource: Pick<WantedResource, "kind" | "alias" | "name">): Promise<boolean> {
    const manager = await this.#manager();
    const stream = streamOf(resource);
    const mark = markOf(owner, resource);
    if (resource.kind === "consumer") {
      const info = await orMissing(manager.consumers.info(stream, resource.name), consumerUnknown);
      if (info === undefined) return false;
      if (!isMarked(info.config.metadata, mark)) throw new ForeignResource(resource.alias);
      return manager.consumers.delete(stream, resource.name);
    }
    const streams = resource.kind === "jobs" ? [stream, jobsBucketStream(stream)] : [stream];
    let there = false;
    for (const name of streams) {
      const info = await orMissing(manager.streams.info(name), streamUnknown);
      if (info === undefined) continue;
      if (!isMarked(info.config.metadata, mark)) throw new ForeignResource(resource.alias);
      there = await manager.streams.delete(name);
    }
    return there;
  }

  /** Consumers of queues that are no longer declared stay: there may be jobs in them. */
  async #ensureJobs(
    manager: JetStreamManager,
    { spec }: Extract<WantedResource, { kind: "jobs" }>,
    mark: Record<string, string>,
  ): Promise<boolean> {
    const { stream, bucket, consumers } = jobsLayout({ ...spec, replicas: this.#replicas });
    let made = false;
    for (const layout of [stream, bucket]) {
      const config = { ...layout, subjects: [...layout.subjects], metadata: mark };
      made = (await this.#ensureStream(manager, config, "jobs")) || made;
    }
    for (const { filter_subjects, durable_name, ...rest } of consumers) {
      const whole = { ...rest, filter_subjects: [...filter_subjects], metadata: mark };
      const { ack_policy: _, deliver_policy: __, ...changeable } = whole;
      const place = { stream: stream.name, name: durable_name, label: "jobs", mark };
      await addOrUpdate(manager, place, { whole, changeable });
    }
    return made;
  }

  async #ensureStream(manager: JetStreamManager, wanted: WantedStream, label: string): Promise<boolean> {
    const config = { ...wanted, num_replicas: this.#replicas };
    const before = await orMissing(manager.streams.info(config.name), streamUnknown);
    // To add one that is there as it is wanted does nothing, and writes nothing.
    const added = before === undefined || isMarked(before.config.metadata, config.metadata ?? {});
    const made = added ? await addStream(manager, config) : undefined;
    if (made !== undefined) {
      requireFlags(made, config);
      return before === undefined;
    }
    const { config: found } = before ?? (await manager.streams.info(config.name));
    if (!isMarked(found.metadata, config.metadata ?? {})) throw new ForeignResource(label);
    requireFlags(await manager.streams.update(config.name, withDefaults(config)), config);
    return false;
  }
}

/** An update leaves out what it does not name: a limit that was taken away must be named as none. */
function withDefaults(config: WantedStream): WantedStream {
  return { max_age: 0, max_bytes: -1, max_msg_size: -1, ...config };
}

/** The new stream; `undefined` when one of this name is there with another configuration. */
async function addStream(manager: JetStreamManager, config: WantedStream): Promise<StreamInfo | undefined> {
  try {
    return await manager.streams.add(config);
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === streamExists) return undefined;
    throw error;
  }
}

/** An older server drops flags that it does not know without a word. */
function requireFlags({ config }: StreamInfo, wanted: WantedStream): void {
  for (const flag of ["allow_direct", "allow_msg_ttl", "republish"] as const) {
    if (wanted[flag] === undefined || config[flag] !== undefined) continue;
    throw new Error(`The broker did not take "${flag}": Trellis needs NATS 2.12 or newer.`);
  }
}

async function ensureConsumer(
  manager: JetStreamManager,
  wanted: Extract<WantedResource, { kind: "consumer" }>,
  mark: Record<string, string>,
): Promise<boolean> {
  const { name, spec, alias } = wanted;
  const place = { stream: streamOf(wanted), name, label: alias, mark };
  return addOrUpdate(manager, place, {
    whole: consumerConfig(name, spec, mark),
    changeable: changeableConfig(spec, mark),
  });
}

interface ConsumerPlace {
  readonly stream: string;
  readonly name: string;
  /** What it is called where people read it. */
  readonly label: string;
  readonly mark: Record<string, string>;
}

/** Says whether it was made. */
async function addOrUpdate(
  manager: JetStreamManager,
  place: ConsumerPlace,
  { whole, changeable }: { whole: Partial<ConsumerConfig>; changeable: Partial<ConsumerUpdateConfig> },
): Promise<boolean> {
  const { stream, name, label, mark } = place;
  let found = await orMissing(manager.consumers.info(stream, name), consumerUnknown);
  if (found === undefined) {
    try {
      await manager.consumers.add(stream, { ...whole, durable_name: name });
      return true;
    } catch (error) {
      // Another control plane made it in this moment, or somebody else has.
      if (!(error instanceof JetStreamApiError && consumerExists.has(error.code))) throw error;
      found = await manager.consumers.info(stream, name);
    }
  }
  if (!isMarked(found.config.metadata, mark)) throw new ForeignResource(label);
  // What an update leaves out stays, and the client's own has no way to take priorities away: so all of it is named.
  const { priority_groups: _, priority_policy: __, priority_timeout: ___, ...kept } = found.config;
  await manager.consumers.add(stream, { ...kept, ...changeable }, asUpdate);
  return false;
}

const asUpdate: ConsumerCreateOptions & { readonly action: "update" } = { action: "update" };

async function orMissing<T>(asked: Promise<T>, missing: number): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === missing) return undefined;
    throw error;
  }
}

function markOf(owner: Owner, { kind, alias }: { kind: string; alias: string }): Record<string, string> {
  return {
    "trellis.platform": owner.platform,
    "trellis.deployment": owner.deployment,
    "trellis.kind": kind,
    "trellis.alias": alias,
  };
}

function isMarked(
  metadata: Readonly<Record<string, string>> | undefined,
  mark: Record<string, string>,
): boolean {
  return Object.entries(mark).every(([key, value]) => metadata?.[key] === value);
}

/** The bucket of keys, rates and schedules that stands beside a stream of jobs. */
function jobsBucketStream(stream: string): string {
  return `KV_jobs_${stream.slice("JOBS_".length)}`;
}
